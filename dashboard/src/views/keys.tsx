// Keys of one's own tenant, and the secret that signs its webhooks. Operators
// use the same table for any tenant.
import { useRef, useState } from 'preact/hooks'
import { call, Problem } from '../lib/api'
import { useWhole } from '../lib/resource'
import { can, canOrder, me } from '../lib/session'
import { plain } from '../lib/text'
import { Badge } from '../ui/badge'
import { Empty, Field, ProblemBox, say, sayProblem, Select, Text, Title, When } from '../ui/basics'
import { confirm } from '../ui/confirm'
import { ListTable, type Column } from '../ui/table'
import type { Key } from '../types'

export function Keys() {
  return (
    <>
      <Title text="Keys" />
      <KeyTable path="/v1/keys" />
      {can('write') && <WebhookSecret />}
    </>
  )
}

const levels = ['read', 'write', 'operator']

export function KeyTable({ path }: { path: string }) {
  const list = useWhole<Key>(path, 15_000)
  const [secret, show] = useState('')
  const own = me.get()?.key.id
  const revoke = async (k: Key) => {
    const mine = k.id === own ? ' It is the key you are signed in with.' : ''
    if (!(await confirm('Revoke this key?', `Whoever uses “${plain(k.name || k.id)}” is refused from now on. It cannot be given back.${mine}`, 'Revoke the key'))) return
    await call('DELETE', path + '/' + encodeURIComponent(k.id)).then(() => say('The key is revoked.'), sayProblem)
    list.reload()
  }
  const columns: Column<Key>[] = [
    { head: 'State', cell: (k) => (k.revoked_at ? <Badge of="cancelled" label="revoked" /> : <Badge of="ready" label="good" />) },
    { head: 'Key', main: true, cell: (k) => <><strong><Text>{k.name || '(no name)'}</Text></strong>{k.id === own && <span class="muted"> · this one</span>}<div class="small muted"><code><Text>{k.id}</Text></code></div></> },
    { head: 'May', cell: (k) => k.scopes.join(', ') },
    { head: 'Made', cell: (k) => <When at={k.created_at} /> },
    { head: 'Last used', cell: (k) => <When at={k.last_used_at} none="never" /> },
    ...(canOrder() ? [{ head: 'Actions', cell: (k: Key) => (k.revoked_at ? '–' : <button type="button" class="quiet danger" aria-label={'Revoke ' + plain(k.name || k.id)} onClick={() => revoke(k)}>Revoke</button>) }] : []),
  ]
  return (
    <>
      {secret && <Once label="The new key" text={secret} done={() => show('')} />}
      {canOrder() && <NewKey path={path} made={(s) => (show(s), list.reload())} />}
      <ListTable list={list} caption="Keys" columns={columns} id={(k) => k.id} empty={<Empty title="No keys." />} />
    </>
  )
}

function NewKey({ path, made }: { path: string; made: (secret: string) => void }) {
  const name = useRef<HTMLInputElement>(null)
  const [scope, choose] = useState('read')
  const [problem, fail] = useState<Problem>()
  const most = levels.findLastIndex((l) => me.get()?.key.scopes.includes(l))
  const submit = (e: Event) => {
    e.preventDefault()
    fail(undefined)
    call<{ key: string }>('POST', path, { name: name.current!.value.trim(), scopes: [scope] }).then((k) => {
      name.current!.value = ''
      made(k.key)
    }, fail)
  }
  return (
    <form class="filters" onSubmit={submit}>
      <Field label="Name of a new key" class="grow" error={problem?.fields.name}>{(p) => <input {...p} ref={name} placeholder="What it is for" maxLength={100} />}</Field>
      <Field label="It may" error={problem?.fields.scopes}>{(p) => <Select {...p} value={scope} options={levels.slice(0, most + 1).map((l) => [l, l])} onValue={choose} />}</Field>
      <button type="submit">Make a key</button>
      <ProblemBox problem={problem} />
    </form>
  )
}

/** A secret that is shown this one time. */
export function Once({ label, text, done }: { label: string; text: string; done: () => void }) {
  const copy = () => navigator.clipboard.writeText(text).then(() => say('Copied.'), () => say('It could not be copied; select it and copy by hand.'))
  return (
    <div class="box warn once" role="alert">
      <p><strong>{label}</strong> is shown this once. Keep it where secrets are kept.</p>
      <code tabIndex={0}>{text}</code>
      <p class="row"><button type="button" onClick={copy}>Copy</button><button type="button" class="quiet" onClick={done}>I have it</button></p>
    </div>
  )
}

function WebhookSecret() {
  const [secret, show] = useState('')
  const take = (s: { secret?: string | null }) => (s.secret ? show(s.secret) : say('There is none yet; make one.'))
  const rotate = async () => {
    if (await confirm('Make a new signing secret?', 'Webhooks are signed with the new one at once; receivers that check with the old one will refuse them.', 'Make a new one'))
      await call<{ secret?: string | null }>('POST', '/v1/webhook-secret/rotate').then(take, sayProblem)
  }
  return (
    <div class="card">
      <h2>Webhook signing secret</h2>
      <p class="muted">What is sent to your webhooks is signed with it, so that a receiver can tell it from a stranger’s.</p>
      {secret && <p><code class="secret" tabIndex={0}>{secret}</code></p>}
      <p class="row">
        {secret ? <button type="button" class="quiet" onClick={() => show('')}>Hide</button> : <button type="button" onClick={() => call<{ secret?: string | null }>('GET', '/v1/webhook-secret').then(take, sayProblem)}>Show</button>}
        <button type="button" class="quiet danger" onClick={rotate}>Make a new one</button>
      </p>
    </div>
  )
}
