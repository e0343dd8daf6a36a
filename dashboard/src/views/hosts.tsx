// The hosts of a running job: how fast each is asked, and what it waits for.
import { useResource } from '../lib/resource'
import { count, many, rate } from '../lib/text'
import { span } from '../lib/time'
import { Badge } from '../ui/badge'
import { Empty, In, Text, Until } from '../ui/basics'
import { Table, Wait, type Column } from '../ui/table'
import { kinds } from './machine'
import { ended, type Host, type Job, type List, type Live } from '../types'

const columns = (fleet: boolean): Column<Host>[] => [
  { head: 'State', cell: (h) => <Badge of={h.state} /> },
  { head: 'Host', main: true, cell: (h) => <><span class="url"><Text>{h.host}</Text></span>{h.reason && <div class="small"><Text>{h.reason}</Text></div>}{fleet && h.worker && <div class="small muted">held by <span class="holder"><Text>{h.worker}</Text></span></div>}</> },
  { head: 'Wakes up', cell: (h) => <Until at={h.until} /> },
  { head: 'Pace', num: true, cell: (h) => (h.gap_ms != null ? <div>{span(h.gap_ms)}{!!h.learned_ms && <div class="small muted">learned {span(h.learned_ms)}</div>}</div> : '–') },
  { head: 'In flight', num: true, cell: (h) => <span>{count(h.in_flight)}<span class="muted"> / {count(h.cap)}</span></span> },
  { head: 'Queued', num: true, cell: (h) => count(h.queued) },
  { head: 'Requests/s', num: true, cell: (h) => rate(h.requests_per_second) },
  { head: '429s', num: true, cell: (h) => (h.http_429 ? <strong>{count(h.http_429)}</strong> : count(h.http_429)) },
]

export function Hosts({ api, job, live }: { api: string; job: Job; live?: Live }) {
  const list = useResource<List<Host>>(api + '/hosts', ended(job.status) ? 0 : 1500)
  return (
    <Wait of={list}>
      {(d) => (d.items?.length
        ? <>
            {live?.binding && <p><Text>{live.binding}</Text></p>}
            {!!live?.waits?.length && <ul class="plain waits">{live.waits.map((w) => <li key={w.reason}>{many(w.hosts, 'host waits', 'hosts wait')} for <Text>{kinds[w.reason] ?? w.reason}</Text></li>)}</ul>}
            <Table caption="Hosts of this job" columns={columns(new Set(d.items.map((h) => h.worker)).size > 1)} rows={d.items} id={(h) => h.host} />
          </>
        : ended(job.status)
          ? <Empty title="The job has ended, so no host is busy or waits."><p>What was learned about each host is kept: see <In href={'/domains?job=' + encodeURIComponent(job.id)}>domain knowledge</In>.</p></Empty>
          : <Empty title="No hosts yet."><p>They appear as soon as the job runs: each with its pace, and what it waits for until when.</p></Empty>)}
    </Wait>
  )
}
