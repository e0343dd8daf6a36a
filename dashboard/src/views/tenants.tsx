// Operator: who may order crawls, on which plan.
import { useRef, useState } from 'preact/hooks'
import { call, Problem } from '../lib/api'
import { useResource, useWhole } from '../lib/resource'
import { plain } from '../lib/text'
import { Badge } from '../ui/badge'
import { Empty, Field, In, ProblemBox, say, sayProblem, Select, Text, Title, When } from '../ui/basics'
import { confirm } from '../ui/confirm'
import { ListTable, Wait, type Column } from '../ui/table'
import { KeyTable } from './keys'
import type { List, Plan, Tenant } from '../types'

const columns: Column<Tenant>[] = [
  { head: 'State', cell: (t) => (t.disabled ? <Badge of="paused" label="disabled" /> : <Badge of="ready" label="good" />) },
  { head: 'Tenant', main: true, cell: (t) => <><In class="name" href={'/tenants/' + encodeURIComponent(t.id)}><Text>{t.name || t.id}</Text></In><div class="small muted"><code><Text>{t.id}</Text></code></div></> },
  { head: 'Plan', cell: (t) => <Text>{t.plan}</Text> },
  { head: 'Weight', num: true, cell: (t) => t.weight ?? '–' },
  { head: 'Since', cell: (t) => <When at={t.created_at} /> },
]

const usePlans = () => (useResource<List<Plan>>('/v1/plans').data?.items ?? []).map((p): [string, string] => [p.name, p.name])

export function Tenants() {
  const list = useWhole<Tenant>('/v1/tenants', 15_000)
  const id = useRef<HTMLInputElement>(null)
  const name = useRef<HTMLInputElement>(null)
  const plans = usePlans()
  const [plan, choose] = useState('')
  const [problem, fail] = useState<Problem>()
  const submit = (e: Event) => {
    e.preventDefault()
    fail(undefined)
    call<Tenant>('POST', '/v1/tenants', { id: id.current!.value.trim(), name: name.current!.value.trim(), plan: plan || plans[0]?.[0] }).then(() => {
      id.current!.value = name.current!.value = ''
      say('The tenant exists. Open it to make its first key.')
      list.reload()
    }, fail)
  }
  const reload = async () => {
    if (await confirm('Read the configuration again?', 'Plans and safety caps are taken from the file as it is now. Jobs that run keep what they were granted.', 'Read it again'))
      await call('POST', '/v1/reload').then(() => say('The configuration was read again.'), sayProblem)
  }
  return (
    <>
      <Title text="Tenants"><button type="button" onClick={reload}>Reload the configuration</button></Title>
      <form class="filters" onSubmit={submit}>
        <Field label="Id of a new tenant" error={problem?.fields.id}>{(p) => <input {...p} ref={id} maxLength={63} placeholder="acme" spellcheck={false} autocapitalize="off" />}</Field>
        <Field label="Its name" class="grow" error={problem?.fields.name}>{(p) => <input {...p} ref={name} maxLength={100} />}</Field>
        <Field label="Plan" error={problem?.fields.plan}>{(p) => <Select {...p} value={plan || plans[0]?.[0] || ''} options={plans} onValue={choose} />}</Field>
        <button type="submit">Add the tenant</button>
        <ProblemBox problem={problem} />
      </form>
      <ListTable list={list} caption="Tenants" columns={columns} id={(t) => t.id} empty={<Empty title="No tenants." />} />
    </>
  )
}

export function TenantView({ id }: { id: string }) {
  const path = '/v1/tenants/' + encodeURIComponent(id)
  const tenant = useResource<Tenant>(path)
  const plans = usePlans()
  const change = (c: Partial<Tenant>, said: string) => call('PATCH', path, c).then(() => say(said), sayProblem).then(tenant.reload)
  const disable = async (t: Tenant) => {
    if (t.disabled) return change({ disabled: false }, 'The tenant may come back.')
    if (await confirm('Disable this tenant?', `The keys of “${plain(t.name || t.id)}” are refused and its schedules rest until it is enabled again.`, 'Disable it')) await change({ disabled: true }, 'The tenant is disabled.')
  }
  return (
    <Wait of={tenant}>
      {(t) => (
        <>
          <p class="crumbs"><In href="/tenants">Tenants</In> / <Text>{id}</Text></p>
          <Title text={t.name || t.id}>{t.disabled && <Badge of="paused" label="disabled" />}</Title>
          <div class="filters">
            <Field label="Plan">{(p) => <Select {...p} value={t.plan} options={plans.some(([n]) => n === t.plan) ? plans : [[t.plan, t.plan], ...plans]} onValue={(plan) => change({ plan }, 'The plan is changed.')} />}</Field>
            <Field label="Weight" hint="Its share of the slots when tenants compete.">
              {(p) => <input {...p} type="number" min={1} max={1000} value={t.weight ?? 1} onChange={(e) => change({ weight: Number(e.currentTarget.value) }, 'The weight is changed.')} />}
            </Field>
            <button type="button" class={t.disabled ? '' : 'danger'} onClick={() => disable(t)}>{t.disabled ? 'Enable' : 'Disable'}</button>
          </div>
          <h2>Keys</h2>
          <KeyTable path={path + '/keys'} />
        </>
      )}
    </Wait>
  )
}
