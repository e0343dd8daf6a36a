// What a job's webhook was told, and what it said to that.
import { useWhole } from '../lib/resource'
import { Badge } from '../ui/badge'
import { Empty, Out, Text, Until, When } from '../ui/basics'
import { ListTable, type Column } from '../ui/table'
import { ended, type Delivery, type Job } from '../types'

const columns: Column<Delivery>[] = [
  { head: 'State', cell: (d) => (d.done_at ? (d.error ? <Badge of="failed" label="given up" /> : <Badge of="completed" label="delivered" />) : <Badge of="waiting" />) },
  { head: 'Event', cell: (d) => d.event },
  { head: 'To', main: true, cell: (d) => <><Out url={d.url} />{d.error && <div class="small muted"><Text>{d.error}</Text></div>}</> },
  { head: 'Attempts', num: true, cell: (d) => d.attempts },
  { head: 'Answer', num: true, cell: (d) => d.status || '–' },
  { head: 'When', cell: (d) => (d.done_at ? <When at={d.done_at} /> : <>again <Until at={d.next_at} /></>) },
]

export function Deliveries({ api, job }: { api: string; job: Job }) {
  const list = useWhole<Delivery>(api + '/deliveries', (d) => (!ended(job.status) || (d.items ?? []).some((x) => !x.done_at) ? 3000 : 0))
  return (
    <ListTable list={list} caption="Webhook deliveries" columns={columns} id={(d) => d.id} empty={
      <Empty title={job.webhook ? 'Nothing was sent yet.' : 'This job has no webhook.'}>
        <p>{job.webhook ? 'The webhook is told, signed, when the job ends; it is tried again with growing pauses until it answers with 2xx.' : 'Give the next one an address under “More”, and it is told, signed, when the job ends.'}</p>
      </Empty>
    } />
  )
}
