// Operator: every process that fetches, and how old the knowledge of it is.
import { useResource } from '../lib/resource'
import { count, many, rate } from '../lib/text'
import { ago, clock, span, useNow } from '../lib/time'
import { Badge } from '../ui/badge'
import { Text, Title } from '../ui/basics'
import { Table, Wait, type Column } from '../ui/table'
import type { Maybe, Worker, Workers as Fleet } from '../types'

function Up({ since }: { since: Maybe<string> }) {
  const t = useNow(1000)
  return <>{since ? <span title={'since ' + clock(since)}>{span(Math.floor((t - Date.parse(since)) / 1000) * 1000)}</span> : '–'}</>
}

/** Heartbeats come every few seconds, so this is told by the second, and never in the future. */
function Heard({ at }: { at: Maybe<string> }) {
  const t = useNow(1000)
  if (!at) return <>–</>
  const old = Math.max(0, t - Date.parse(at))
  return <time dateTime={at} title={clock(at)}>{old >= 2000 && old < 60_000 ? Math.floor(old / 1000) + ' s ago' : ago(at, Date.parse(at) + old)}</time>
}

const states: Record<string, [string, string]> = { live: ['ready', 'live'], waiting: ['waiting', 'waiting'], silent: ['parked', 'silent'] }

function State({ of: w }: { of: Worker }) {
  const [look, label] = w.state === 'live' && !w.hosts ? ['idle', 'idle'] : states[w.state] ?? ['unknown', w.state]
  return <Badge of={look} label={label} />
}

const columns: Column<Worker>[] = [
  { head: 'State', cell: (w) => <State of={w} /> },
  { head: 'Worker', main: true, cell: (w) => <><span class="url"><Text>{w.id}</Text></span>{w.self && <span class="small muted"> this server</span>}</> },
  { head: 'Machine', cell: (w) => <Text>{w.machine}</Text> },
  { head: 'Up for', num: true, cell: (w) => <Up since={w.started_at} /> },
  { head: 'Hosts', num: true, cell: (w) => count(w.hosts) },
  { head: 'In flight', num: true, cell: (w) => (w.state === 'silent' ? '–' : count(w.in_flight)) },
  { head: 'Pages/s', num: true, cell: (w) => (w.state === 'silent' ? '–' : rate(w.pages_per_second)) },
  { head: 'Waits for', long: true, cell: (w) => <Why of={w} /> },
  { head: 'Last heard', cell: (w) => <Heard at={w.heard_at} /> },
]

function Why({ of: w }: { of: Worker }) {
  if (w.waiting) return <span class="small"><Text>{w.waiting}</Text></span>
  if (w.state === 'silent') return <span class="small">a heartbeat; without one others take its hosts</span>
  return <span class="muted">{w.hosts ? 'nothing' : 'work'}</span>
}

const sum = (list: Worker[], of: (w: Worker) => Maybe<number>) => list.reduce((n, w) => n + (of(w) ?? 0), 0)

export function Workers() {
  const fleet = useResource<Fleet>('/v1/workers', 1500)
  return (
    <>
      <Title text="Workers" />
      <Wait of={fleet}>
        {(f) => (
          <>
            {f.waiting && <p class="box warn" role="status"><strong>Waiting:</strong> <Text>{f.waiting}</Text>.{f.at ? <> The other workers are shown as they were <Heard at={f.at} />.</> : ' Other workers are not known yet.'}</p>}
            <dl class="tiles few">
              <div><dt>Workers</dt><dd class="num">{count(f.items.length)}</dd></div>
              <div><dt>Hosts held</dt><dd class="num">{count(sum(f.items, (w) => w.hosts))}</dd></div>
              <div><dt>Pages/s</dt><dd class="num">{rate(sum(f.items, (w) => (w.state === 'silent' ? 0 : w.pages_per_second)))}</dd></div>
            </dl>
            <Table caption="Everybody who fetches" columns={columns} rows={f.items} id={(w) => w.id} />
            <p class="muted small under">
              {f.lease_seconds
                ? <>A worker that is told to stop leaves this list at once; one that was killed or hangs falls silent and leaves it within {many(f.lease_seconds, 'second')}, and others take its hosts.</>
                : <>This server works alone. With --redis-url and --database-url it is one of as many as you start: tiptoe worker.</>}
            </p>
          </>
        )}
      </Wait>
    </>
  )
}
