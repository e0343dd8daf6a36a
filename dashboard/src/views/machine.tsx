// The machine below all jobs: its layers, and what waiting URLs wait for.
import { useResource } from '../lib/resource'
import { count, many, rate } from '../lib/text'
import { Text, Title } from '../ui/basics'
import { Gauges } from '../ui/gauge'
import { Table, Wait, type Column } from '../ui/table'
import type { Engine, WaitReason } from '../types'

// The kinds that the scheduler tells apart.
export const kinds: Record<string, string> = {
  pace: 'their pace: the gap between two requests', block: 'the end of a pause: Retry-After, or failures in a row', retry: 'the next try of a URL that failed',
  robots: 'their robots.txt', robots_slots: 'a free slot to fetch robots.txt', lease: 'a lease that is safe to act on', share: 'their job’s share of the workers', slots: 'their job’s own bound on requests in flight',
  concurrency: 'requests in flight to end', parked: 'somebody to release them: they failed too often',
}

const columns: Column<WaitReason>[] = [
  { head: 'Waiting for', main: true, cell: (w) => <Text>{kinds[w.reason] ?? w.reason}</Text> },
  { head: 'Hosts', num: true, cell: (w) => count(w.hosts) },
  { head: 'URLs', num: true, cell: (w) => count(w.urls) },
]

const fleet = (e: Engine) => (e.processes ?? 1) > 1

export function Machine() {
  const engine = useResource<Engine>('/v1/engine', 1500)
  return (
    <>
      <Title text="Machine" />
      <Wait of={engine}>
        {(e) => (
          <>
            <dl class="tiles few">
              <div><dt>Running</dt><dd class="num">{count(e.queue?.running)}<span class="muted"> / {e.queue?.slots ? count(e.queue.slots) : 'no limit'}</span></dd></div>
              <div><dt>Queued</dt><dd class="num">{count(e.queue?.queued)}</dd></div>
              <div><dt>Pages/s</dt><dd class="num">{rate(e.pages_per_second)}</dd></div>
              <div><dt>In flight</dt><dd class="num">{count(e.in_flight)}</dd></div>
              {fleet(e) && <div><dt>Processes</dt><dd class="num">{count(e.processes)}</dd></div>}
              <div><dt>Commit{fleet(e) && ', slowest'}</dt><dd class="num">{e.commit_ms != null ? rate(e.commit_ms) + ' ms' : '–'}</dd></div>
              <div><dt>Version</dt><dd><Text>{e.version ?? '–'}</Text></dd></div>
            </dl>
            {fleet(e) && <p class="muted small waits">All figures are of {many(e.processes ?? 0, 'process', 'processes')} together, and a few seconds old.</p>}
            <div class="card"><h2>Concurrency layers</h2>{e.layers?.length ? <Gauges layers={e.layers} /> : <p class="muted">No crawl runs, so nothing is in use.</p>}</div>
            <div class="card">
              <h2>What waiting hosts wait for</h2>
              {e.waiting?.length ? <Table caption="Waiting by reason" columns={columns} rows={e.waiting} id={(w) => w.reason} /> : <p class="muted">Nothing waits.</p>}
            </div>
          </>
        )}
      </Wait>
    </>
  )
}
