// All jobs: what runs, what waits for what, what came of the rest.
import { useEffect, useState } from 'preact/hooks'
import { withQuery } from '../lib/api'
import { useList } from '../lib/resource'
import { go } from '../lib/router'
import { can, canOrder } from '../lib/session'
import { count, many, ordinal, rate } from '../lib/text'
import { span } from '../lib/time'
import { Badge } from '../ui/badge'
import { Empty, Field, In, Select, Text, Title, When } from '../ui/basics'
import { Bar } from '../ui/gauge'
import { ListTable, type Column } from '../ui/table'
import { ended, type Job } from '../types'

const statuses: [string, string][] = [
  ['', 'All'], ['queued,running,paused', 'Not ended'], ['completed,partial,failed,cancelled', 'Ended'],
  ['queued', 'Queued'], ['running', 'Running'], ['paused', 'Paused'], ['completed', 'Completed'], ['partial', 'Partial'], ['failed', 'Failed'], ['cancelled', 'Cancelled'],
]

// Single pages are listed only when they are asked for.
const types: [string, string][] = [['', 'All'], ['crawl', 'Crawl'], ['warm', 'Warm'], ['command', 'Command'], ['fetch', 'Single pages']]

export const jobName = (j: Job) => j.label || j.urls?.[0] || j.id

export function Jobs({ query }: { query: URLSearchParams }) {
  const filter = {
    status: query.get('status') ?? '', type: query.get('type') ?? '', q: query.get('q') ?? '',
    schedule: query.get('schedule') ?? '', tenant: query.get('tenant') ?? '',
  }
  const [typed, type] = useState(filter.q)
  const choose = (change: Partial<typeof filter>) => go(withQuery('/jobs', { ...filter, ...change }), true)
  useEffect(() => {
    const t = setTimeout(() => typed !== filter.q && choose({ q: typed }), 300)
    return () => clearTimeout(t)
  }, [typed])
  const filtered = Object.values(filter).some(Boolean)
  const list = useList<Job>(withQuery('/v1/jobs', filter), (j) => j.id, (d) => ((d.items ?? []).some((j) => !ended(j.status)) ? 1500 : 8000))
  const columns: Column<Job>[] = [
    { head: 'Status', cell: (j) => <Badge of={j.status} /> },
    { head: 'Job', main: true, cell: (j) => <JobCell job={j} tenant={!!filter.tenant} /> },
    { head: 'Progress', cell: (j) => <Progress job={j} /> },
    { head: 'Why', long: true, cell: (j) => <Why job={j} /> },
    { head: 'When', cell: (j) => <When at={j.ended_at ?? j.started_at ?? j.created_at} /> },
  ]
  return (
    <>
      <Title text="Jobs">{canOrder() && <In class="button primary" href="/jobs/new">New job</In>}</Title>
      <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}>
        <Field label="Status">{(p) => <Select {...p} value={filter.status} options={statuses} onValue={(status) => choose({ status })} />}</Field>
        <Field label="Type">{(p) => <Select {...p} value={filter.type} options={types} onValue={(t) => choose({ type: t })} />}</Field>
        {can('operator') && <Field label="Tenant">{(p) => <Select {...p} value={filter.tenant} options={[['', 'Own'], ['*', 'All']]} onValue={(tenant) => choose({ tenant })} />}</Field>}
        <Field label="Search" class="grow">{(p) => <input {...p} type="search" value={typed} placeholder="Part of a URL, or an id" onInput={(e) => type(e.currentTarget.value)} />}</Field>
        {filter.schedule && <p class="chip">Of schedule <Text>{filter.schedule}</Text> <button type="button" class="link" onClick={() => choose({ schedule: '' })}>Show all</button></p>}
      </form>
      <ListTable list={list} caption="Jobs, newest first" columns={columns} id={(j) => j.id} empty={
        filtered
          ? <Empty title="No job fits these filters."><p><In href="/jobs">Show all jobs</In></p></Empty>
          : <Empty title="No jobs yet.">
              <p>A job is one crawl: give it an address, and it reads robots.txt, follows links within its scope, and keeps the reason for every decision.</p>
              {canOrder() ? <p><In class="button primary" href="/jobs/new">Start the first one</In></p> : <p>{can('write') ? 'This is the dashboard of one crawl; tiptoe serve takes orders.' : 'This key can only read; a key with the scope “write” can start one.'}</p>}
            </Empty>
      } />
    </>
  )
}

function JobCell({ job: j, tenant }: { job: Job; tenant: boolean }) {
  const others = (j.urls?.length ?? 1) - 1
  return (
    <>
      <In class="name" href={'/jobs/' + encodeURIComponent(j.id)}><Text>{jobName(j)}</Text></In>
      <div class="small muted">
        {j.label && j.urls?.[0] && <><Text>{j.urls[0]}</Text> · </>}{others > 0 && <>and {many(others, 'more URL')} · </>}
        {j.type}{j.profile && ', ' + j.profile}{j.priority ? `, priority ${j.priority}` : ''}{j.schedule && ', scheduled'}{tenant && <>, tenant <Text>{j.tenant}</Text></>}
      </div>
    </>
  )
}

export function Progress({ job: j }: { job: Job }) {
  const done = j.progress?.processed ?? j.pages?.spent ?? 0
  const most = j.limits?.pages || 0
  if (j.status === 'queued') return <span class="small">{j.position ? ordinal(j.position) + ' in the queue' : 'in the queue'}</span>
  return (
    <div class="progress">
      {most > 0 && <Bar value={j.pages?.spent ?? done} max={most} tone={j.status === 'failed' ? 'bad' : 'ok'} />}
      <span class="small num">
        {count(done)}{most > 0 && ' / ' + count(most)} pages
        {j.status === 'running' && j.progress?.pages_per_second != null && <> · {rate(j.progress.pages_per_second)}/s</>}
        {j.status === 'running' && j.progress?.eta_seconds != null && <> · {span(j.progress.eta_seconds * 1000)} left</>}
      </span>
    </div>
  )
}

function Why({ job: j }: { job: Job }) {
  if (j.error) return <span class="small"><Text>{j.error}</Text></span>
  if (j.waiting_for) return <span class="small">{j.status === 'queued' && 'waits for '}<Text>{j.waiting_for}</Text></span>
  if (j.status === 'running' && j.progress?.eta_reason) return <span class="small muted"><Text>{j.progress.eta_reason}</Text></span>
  return <span class="muted">–</span>
}
