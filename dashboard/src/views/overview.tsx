// How one job goes: figures, budgets, charts over time, the layers.
import { useMemo } from 'preact/hooks'
import { bytes, count, many, rate } from '../lib/text'
import { now, span } from '../lib/time'
import { Badge } from '../ui/badge'
import { In, Out, Text } from '../ui/basics'
import { Chart, type Line } from '../ui/chart'
import { Bar, Gauges } from '../ui/gauge'
import { LimitTable } from './preview'
import type { Feed } from '../lib/feed'
import { ended, type Job, type Page } from '../types'

const speed: Line[] = [{ label: 'pages/s', color: '--c-info' }]
const classes: Line[] = [
  { label: '2xx', color: '--c-ok' }, { label: '3xx', color: '--c-info' }, { label: '4xx', color: '--c-warn' }, { label: '5xx', color: '--c-bad' }, { label: 'no answer', color: '--c-quiet' },
]
const slowed: Line[] = [{ label: '429s', color: '--c-warn' }]

const sum = (row: number[]) => row.reduce((a, b) => a + b, 0)

export function Overview({ feed, job, base }: { feed: Feed; job: Job; base: string }) {
  const { live } = feed
  const p = (!ended(job.status) && live?.progress) || job.progress
  const running = job.status === 'running'
  const eta = running ? live?.eta_seconds ?? p?.eta_seconds : undefined
  const elapsed = running && live?.elapsed_seconds != null ? live.elapsed_seconds * 1000 : job.started_at ? (job.ended_at ? Date.parse(job.ended_at) : now()) - Date.parse(job.started_at) : undefined
  const pages = running && live?.progress ? live.progress.processed : job.pages?.spent ?? p?.processed ?? 0
  const tiles: [string, string, string?][] = [
    ['Pages', count(p?.processed), 'processed'], ['OK', count(p?.successful), 'successful'], ['Failed', count(p?.failed)], ['Throttled', count(p?.throttled)],
    ['Blocked', count(p?.blocked)], ['Skipped', count(p?.skipped)], ['Timeouts', count(p?.timeouts)], ['Requests', count(p?.requests)], ['429 answers', count(p?.http_429)], ['Retries', count(p?.retries)],
    ['Read', bytes(p?.bytes)], ['Queued', count((running && live?.queued) || p?.queued)], ['In flight', count(running ? live?.in_flight ?? p?.in_flight : p?.in_flight)],
  ]
  return (
    <div class="overview">
      <dl class="tiles">{tiles.map(([name, value, title]) => <div key={name} title={title}><dt>{name}</dt><dd class="num">{value}</dd></div>)}</dl>
      <div class="two">
        <Budgets job={job} pages={pages} elapsed={elapsed} />
        <div class="card">
          <h2>What decides the pace</h2>
          {running && live?.binding && <p><Text>{live.binding}</Text></p>}
          {running && eta != null && eta > 0 && <p>About <strong>{span(eta * 1000)}</strong> left{(live?.eta_reason ?? p?.eta_reason) && <span class="muted">: <Text>{live?.eta_reason ?? p?.eta_reason}</Text></span>}</p>}
          {running && live?.hosts && <HostCounts hosts={live.hosts} base={base} />}
          {running && live && !live.binding && !(eta! > 0) && <p class="muted">Nothing holds it back at the moment.</p>}
          {running && !live && <p class="muted">Waiting for the first figures…</p>}
          {!running && <p class="muted">{ended(job.status) ? 'It has ended.' : job.status === 'paused' ? 'It is paused.' : 'It has not begun.'}</p>}
        </div>
      </div>
      <Charts data={feed.data} />
      {running && live?.layers && (
        <div class="card">
          <h2>Concurrency layers</h2>
          <Gauges layers={live.layers} />
        </div>
      )}
      <div class="two">
        {feed.pages.length > 0 && (
          <div class="card">
            <h2>Latest pages</h2>
            <ol class="latest">{feed.pages.slice(0, 10).map((l) => <Latest key={l.url + (l.at ?? '')} page={l} base={base} />)}</ol>
          </div>
        )}
        <Ordered job={job} />
      </div>
    </div>
  )
}

function Latest({ page: l, base }: { page: Page; base: string }) {
  return (
    <li>
      <Badge of={l.outcome} label={l.status ? String(l.status) : undefined} />
      <In class="url" href={`${base}/explain?url=${encodeURIComponent(l.url)}`}><Text>{l.url}</Text></In>
      <span class="num muted small">{l.ms != null && span(l.ms)}</span>
    </li>
  )
}

function HostCounts({ hosts, base }: { hosts: Record<string, number>; base: string }) {
  const seen = ['running', 'ready', 'waiting', 'parked', 'idle'].filter((s) => hosts[s])
  return <p class="row">{seen.map((s) => <Badge key={s} of={s} label={`${count(hosts[s])} ${s}`} />)} <In href={base + '/hosts'}>See the hosts</In></p>
}

function Budgets({ job, pages, elapsed }: { job: Job; pages: number; elapsed?: number }) {
  const l = job.limits
  return (
    <div class="card">
      <h2>Budget</h2>
      {l?.pages ? (
        <div class="budget"><span>Pages</span><span class="num">{count(pages)} / {count(l.pages)}</span><Bar value={pages} max={l.pages} marks={[0.8, 0.95]} /></div>
      ) : <p>No page limit; {many(pages, 'page')} so far.</p>}
      {elapsed !== undefined && (l?.time_ms
        ? <div class="budget"><span>Time</span><span class="num">{span(elapsed)} / {span(l.time_ms)}</span><Bar value={elapsed} max={l.time_ms} marks={[0.8, 0.95]} /></div>
        : <p>{span(elapsed)} so far.</p>)}
      {(l?.reasons?.length ?? 0) > 0 && <ul class="reasons">{l!.reasons!.map((r) => <li key={r.limit}><Text>{r.message}</Text></li>)}</ul>}
    </div>
  )
}

function Charts({ data }: { data: number[][] }) {
  const [t, pps] = data as [number[], number[]]
  const shown = useMemo(() => ({
    speed: [t, pps],
    classes: [t, data[4]!, data[5]!, data[6]!, data[7]!, data[2]!],
    slowed: [t, data[8]!],
  }), [data])
  if (t.length < 2) return <p class="card muted">The charts begin when there are two seconds to compare.</p>
  const total = sum(pps) / pps.length
  const n429 = sum(data[8]!)
  const span5 = shown.classes.slice(1).map((row, i) => [classes[i]!.label, sum(row)] as const)
  const all = sum(span5.map(([, n]) => n)) || 1
  return (
    <div class="charts">
      <Chart title="Throughput" summary={`now ${rate(pps.at(-1))} pages a second, ${rate(total)} on average, ${rate(Math.max(...pps))} at most`} lines={speed} data={shown.speed} />
      <Chart title="Answers by class" stacked summary={span5.filter(([, v]) => v > 0).map(([l, v]) => `${l} ${Math.round((v / all) * 100)} %`).join(', ') || 'none yet'} lines={classes} data={shown.classes} />
      <Chart title="429 answers" bars summary={n429 > 0 ? many(n429, 'time') + ' asked to slow down' : 'nobody asked to slow down'} lines={slowed} data={shown.slowed} />
    </div>
  )
}

function Ordered({ job }: { job: Job }) {
  const r = job.request ?? {}
  const facts: [string, string | undefined][] = [
    ['Scope', r.scope], ['Depth', r.depth?.toString()], ['Only', r.include?.join(', ')], ['Not', r.exclude?.join(', ')], ['Seeding', r.seeding],
    ['Pause', r.delay_ms !== undefined ? span(r.delay_ms) : undefined], ['Webhook', job.webhook ?? undefined],
  ]
  return (
    <div>
      <div class="card">
        <h2>What was ordered</h2>
        <ul class="plain">{(job.urls ?? []).slice(0, 10).map((u) => <li key={u}><Out url={u} /></li>)}{(job.urls?.length ?? 0) > 10 && <li class="muted">and {many(job.urls!.length - 10, 'more URL')}</li>}</ul>
        <dl class="pairs">{facts.filter(([, v]) => v).map(([k, v]) => <div key={k}><dt>{k}</dt><dd><Text>{v}</Text></dd></div>)}</dl>
      </div>
      {job.limits && <div class="card"><h2>Limits</h2><LimitTable limits={{ ...job.limits, reasons: [] }} caption="Limits of this job" /></div>}
    </div>
  )
}
