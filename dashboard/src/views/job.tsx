// One job: its head, and the tabs below it.
import { useState } from 'preact/hooks'
import { call, download } from '../lib/api'
import { useFeed } from '../lib/feed'
import { go } from '../lib/router'
import { can, canOrder } from '../lib/session'
import { ordinal } from '../lib/text'
import { span, useNow } from '../lib/time'
import { Badge } from '../ui/badge'
import { In, Loading, ProblemBox, say, sayProblem, Text, Title, When } from '../ui/basics'
import { confirm } from '../ui/confirm'
import { Broken } from './broken'
import { Deliveries } from './deliveries'
import { Events } from './events'
import { Explain } from './explain'
import { Hosts } from './hosts'
import { jobName } from './jobs'
import { Overview } from './overview'
import { Pages } from './pages'
import { ended, type Job, type Live } from '../types'

const tabs: [string, string][] = [
  ['overview', 'Overview'], ['hosts', 'Hosts'], ['pages', 'Pages'], ['broken', 'Broken links'], ['explain', 'Explain'], ['events', 'Events'], ['webhook', 'Webhook'],
]

export function JobView({ id, tab, query }: { id: string; tab: string; query: URLSearchParams }) {
  const [turn, again] = useState(0)
  const feed = useFeed(id, turn)
  const { job } = feed
  const base = '/jobs/' + encodeURIComponent(id)
  if (!job) return <><Title text="Job" />{feed.problem ? <ProblemBox problem={feed.problem} retry={() => again((n) => n + 1)} /> : <Loading />}</>
  const api = '/v1' + base
  return (
    <>
      <p class="crumbs"><In href="/jobs">Jobs</In> / <Text>{id}</Text></p>
      <Title text={jobName(job)}><Badge of={job.status} /></Title>
      <p class="meta">
        {job.type}{job.profile && ', ' + job.profile}{job.priority ? `, priority ${job.priority}` : ''} · created <When at={job.created_at} />
        {job.started_at && <> · started <When at={job.started_at} /></>}{job.ended_at && <> · ended <When at={job.ended_at} /></>}
        {job.schedule && <> · by <In href={'/jobs?schedule=' + encodeURIComponent(job.schedule)}>its schedule</In></>}
      </p>
      <Notices job={job} live={feed.live} open={feed.open} />
      <ProblemBox problem={feed.problem} retry={() => again((n) => n + 1)} />
      <div class="actions">
        <Controls job={job} api={api} done={() => again((n) => n + 1)} />
        <span class="grow" />
        <span class="muted small" id="export">Export</span>
        {['jsonl', 'csv', 'sitemap'].map((f) => (
          <button key={f} type="button" class="quiet" aria-label={'Export as ' + f} onClick={() => download(`${api}/export?format=${f}`, `${id}.${f === 'sitemap' ? 'xml' : f}`).catch(sayProblem)}>{f === 'sitemap' ? 'sitemap' : f.toUpperCase()}</button>
        ))}
      </div>
      <nav class="tabs" aria-label="This job">
        <ul>{tabs.map(([t, name]) => <li key={t}><In href={t === 'overview' ? base : base + '/' + t} aria-current={t === tab ? 'page' : undefined}>{name}</In></li>)}</ul>
      </nav>
      <section aria-label={tabs.find(([t]) => t === tab)?.[1] ?? tab}>
        {tab === 'hosts' ? <Hosts api={api} job={job} live={feed.live} />
          : tab === 'pages' ? <Pages api={api} base={base} job={job} query={query} />
          : tab === 'broken' ? <Broken api={api} base={base} job={job} />
          : tab === 'explain' ? <Explain api={api} base={base} job={job} query={query} />
          : tab === 'events' ? <Events feed={feed} base={base} />
          : tab === 'webhook' ? <Deliveries api={api} job={job} />
          : <Overview feed={feed} job={job} base={base} />}
      </section>
    </>
  )
}

// A picture comes once a second, from another server of the fleet within two.
const stale = 6000

function Notices({ job, live, open }: { job: Job; live?: Live; open: boolean }) {
  const t = useNow() // figures that come no more redraw nothing
  const old = live?.at ? t - Date.parse(live.at) : 0
  const tone = job.status === 'failed' ? 'bad' : job.status === 'partial' || job.status === 'paused' ? 'warn' : 'info'
  return (
    <>
      {job.error && <p class={'box ' + tone}><Text>{job.error}</Text></p>}
      {job.status === 'queued' && (
        <p class="box info">{job.position ? <>It is <strong>{ordinal(job.position)}</strong> in the queue. </> : 'It is in the queue. '}{job.waiting_for && <>It waits for <Text>{job.waiting_for}</Text>.</>}</p>
      )}
      {open && job.status === 'running' && old > stale && <p class="box warn" role="status">The figures are {span(Math.round(old / 1000) * 1000)} old: nothing was heard since of the server that drives the job.</p>}
      {!open && !ended(job.status) && <p class="box warn" role="status">Live figures are interrupted; the stream is being opened again.</p>}
    </>
  )
}

// One page, and a crawl on the command line, give no slot back.
const pausable = (job: Job) => job.type !== 'fetch' && job.type !== 'command'

function Controls({ job, api, done }: { job: Job; api: string; done: () => void }) {
  const [busy, work] = useState(false)
  if (!can('write')) return null
  const act = (verb: string, said: string) => async () => {
    work(true)
    await call<Job>('POST', `${api}/${verb}`).then((j) => say(j.status === 'running' ? 'The server that drives the job is told; it takes a moment.' : said), sayProblem)
    work(false)
    done()
  }
  const cancel = async () => {
    if (await confirm('Cancel this job?', 'What was fetched stays. A cancelled job cannot be continued.', 'Cancel the job')) await act('cancel', 'The job is cancelled.')()
  }
  const remove = async () => {
    if (!(await confirm('Delete this job?', 'Its pages, evidence and events are removed for good. Usage stays as it is.', 'Delete it for good'))) return
    await call('DELETE', api).then(() => (say('The job is deleted.'), go('/jobs')), sayProblem)
  }
  const s = job.status
  return (
    <>
      {(s === 'running' || s === 'queued') && pausable(job) && <button type="button" disabled={busy} onClick={act('pause', 'The job is paused.')}>Pause</button>}
      {s === 'paused' && canOrder() && <button type="button" class="primary" disabled={busy} onClick={act('resume', 'The job goes on.')}>Resume</button>}
      {!ended(s) && <button type="button" class="danger" disabled={busy} onClick={cancel}>Cancel</button>}
      {ended(s) && canOrder() && <button type="button" class="danger" disabled={busy} onClick={remove}>Delete</button>}
      {ended(s) && canOrder() && job.urls?.[0] && <In class="button" href={'/jobs/new?url=' + encodeURIComponent(job.urls.join('\n'))}>Run again…</In>}
    </>
  )
}
