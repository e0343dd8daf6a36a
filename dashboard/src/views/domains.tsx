// What earlier crawls learned about hosts: of one job, or of all for operators.
import { useEffect, useState } from 'preact/hooks'
import { call, withQuery } from '../lib/api'
import { useList, useResource } from '../lib/resource'
import { go } from '../lib/router'
import { can } from '../lib/session'
import { count, plain } from '../lib/text'
import { span } from '../lib/time'
import { Empty, Field, say, sayProblem, Select, Text, Title, Until, When } from '../ui/basics'
import { confirm } from '../ui/confirm'
import { ListTable, type Column } from '../ui/table'
import { jobName } from './jobs'
import type { Domain, Job, List } from '../types'

const delay = (ms: number | null | undefined) => (ms ? span(ms) : '–')

export function Domains({ query }: { query: URLSearchParams }) {
  const filter = { job: query.get('job') ?? '', q: query.get('q') ?? '', learned: query.get('learned') ?? '' }
  const [typed, type] = useState(filter.q)
  const choose = (change: Partial<typeof filter>) => go(withQuery('/domains', { ...filter, ...change }), true)
  useEffect(() => {
    const t = setTimeout(() => typed !== filter.q && choose({ q: typed }), 300)
    return () => clearTimeout(t)
  }, [typed])
  const jobs = useResource<List<Job>>('/v1/jobs?limit=100')
  const known = jobs.data?.items ?? []
  const job = filter.job || (can('operator') ? '' : known[0]?.id ?? '')
  const ready = job !== '' || can('operator')
  const list = useList<Domain>(ready ? withQuery('/v1/domains', { ...filter, job }) : null, (d) => d.host, 10_000)
  const forget = async (d: Domain) => {
    if (!(await confirm('Forget what was learned?', `The next crawl will meet ${plain(d.host)} as if for the first time. This is written into the operator log.`, 'Forget it'))) return
    await call('DELETE', '/v1/domains/' + encodeURIComponent(d.host)).then(() => say('Forgotten.'), sayProblem)
    list.reload()
  }
  const columns: Column<Domain>[] = [
    { head: 'Host', main: true, cell: (d) => <><span class="url"><Text>{d.host}</Text></span>{d.block_reason && <div class="small"><Text>{d.block_reason}</Text></div>}</> },
    { head: 'Learned delay', num: true, cell: (d) => delay(d.adaptive_delay_ms) },
    { head: 'Not below', num: true, cell: (d) => delay(d.adaptive_delay_floor_ms) },
    { head: 'robots.txt asks', num: true, cell: (d) => delay(d.crawl_delay_ms) },
    { head: 'Blocked', cell: (d) => (d.blocked_until ? <Until at={d.blocked_until} /> : '–') },
    { head: 'In a row', cell: (d) => (d.error_streak ? count(d.error_streak) + ' refused' : d.success_streak ? count(d.success_streak) + ' fine' : '–') },
    { head: 'Last success', cell: (d) => <When at={d.last_success} /> },
    ...(can('operator') ? [{ head: 'Actions', cell: (d: Domain) => <button type="button" class="quiet danger" aria-label={'Forget ' + plain(d.host)} onClick={() => forget(d)}>Forget</button> }] : []),
  ]
  const options: [string, string][] = known.map((j) => [j.id, plain(jobName(j))])
  if (filter.job && !known.some((j) => j.id === filter.job)) options.unshift([filter.job, filter.job])
  if (can('operator')) options.unshift(['', 'Every job'])
  return (
    <>
      <Title text="Domain knowledge" />
      <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}>
        <Field label="Job">{(p) => <Select {...p} value={job} options={options.length ? options : [['', 'None yet']]} onValue={(j) => choose({ job: j })} />}</Field>
        <Field label="Search" class="grow">{(p) => <input {...p} type="search" value={typed} placeholder="Part of a host name" onInput={(e) => type(e.currentTarget.value)} />}</Field>
        <label class="check"><input type="checkbox" checked={filter.learned === 'true'} onChange={(e) => choose({ learned: e.currentTarget.checked ? 'true' : '' })} /> Only hosts that taught something</label>
      </form>
      {!ready && !jobs.loading ? <Empty title="No jobs yet." /> : (
        <ListTable list={list} caption="What is known about hosts" columns={columns} id={(d) => d.host} empty={
          <Empty title="Nothing is known here yet."><p>When a host answers 429 or asks for a pause, its pace is learned and kept: the next crawl begins with it instead of being told off again.</p></Empty>
        } />
      )}
    </>
  )
}
