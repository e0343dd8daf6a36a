// Orders that repeat.
import { call } from '../lib/api'
import { useWhole } from '../lib/resource'
import { canOrder } from '../lib/session'
import { count, many } from '../lib/text'
import { Badge } from '../ui/badge'
import { Empty, In, say, sayProblem, Text, Title, Until, When } from '../ui/basics'
import { confirm } from '../ui/confirm'
import { ListTable, type Column } from '../ui/table'
import type { Schedule } from '../types'

const every: Record<string, string> = { '6h': 'every 6 hours', '12h': 'every 12 hours', '24h': 'every day', '48h': 'every other day' }

export function Schedules() {
  const list = useWhole<Schedule>('/v1/schedules', 10_000)
  const path = (s: Schedule) => '/v1/schedules/' + encodeURIComponent(s.id)
  const name = (s: Schedule) => s.name || s.job.url || s.job.urls?.[0] || s.id
  const enable = (s: Schedule, enabled: boolean) => call('PATCH', path(s), { enabled }).then(() => say(enabled ? 'The schedule is on.' : 'The schedule rests.'), sayProblem).then(list.reload)
  const remove = async (s: Schedule) => {
    if (!(await confirm('Delete this schedule?', `“${name(s)}” will order no more jobs. The jobs it ordered stay.`, 'Delete the schedule'))) return
    await call('DELETE', path(s)).then(() => say('The schedule is deleted.'), sayProblem)
    list.reload()
  }
  const columns: Column<Schedule>[] = [
    { head: 'State', cell: (s) => (s.enabled ? <Badge of="ready" label="on" /> : <Badge of="paused" label="off" />) },
    { head: 'Schedule', main: true, cell: (s) => <><strong><Text>{name(s)}</Text></strong><div class="small muted"><span class="url"><Text>{s.job.url ?? s.job.urls?.[0]}</Text></span>{(s.job.urls?.length ?? 0) > 1 && <> and {many(s.job.urls!.length - 1, 'more')}</>}{s.job.pages && <>, {many(s.job.pages, 'page')} at most</>}</div>{s.note && <div class="small"><Text>{s.note}</Text></div>}</> },
    { head: 'Rule', cell: (s) => <>{every[s.rule] ?? <><code><Text>{s.rule}</Text></code> <span class="muted small">UTC</span></>}</> },
    { head: 'Next', cell: (s) => (s.enabled ? <Until at={s.next_at} /> : '–') },
    { head: 'Last', cell: (s) => <>{s.last_job ? <In href={'/jobs/' + encodeURIComponent(s.last_job)}><When at={s.last_at} /></In> : <When at={s.last_at} none="never" />}{!!s.skipped && <div class="small muted">skipped {count(s.skipped)} ×</div>}</> },
    { head: 'Actions', cell: (s) => (
      <div class="row">
        <In class="button quiet" href={'/jobs?schedule=' + encodeURIComponent(s.id)} aria-label={'Jobs of ' + name(s)}>Jobs</In>
        {canOrder() && <button type="button" class="quiet" aria-label={(s.enabled ? 'Disable ' : 'Enable ') + name(s)} onClick={() => enable(s, !s.enabled)}>{s.enabled ? 'Disable' : 'Enable'}</button>}
        {canOrder() && <button type="button" class="quiet danger" aria-label={'Delete ' + name(s)} onClick={() => remove(s)}>Delete</button>}
      </div>
    ) },
  ]
  return (
    <>
      <Title text="Schedules">{canOrder() && <In class="button primary" href="/jobs/new?repeat=24h">New schedule</In>}</Title>
      <ListTable list={list} caption="Schedules" columns={columns} id={(s) => s.id} empty={
        <Empty title="No schedules.">
          <p>A schedule orders the same job again and again: every 6, 12, 24 or 48 hours, or by a cron rule in UTC. It is skipped while its last job still runs.</p>
          {canOrder() && <p><In class="button primary" href="/jobs/new?repeat=24h">Set one</In></p>}
        </Empty>
      } />
    </>
  )
}
