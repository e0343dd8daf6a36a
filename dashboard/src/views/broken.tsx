// Broken links of a job, and where they are linked from.
import { useList } from '../lib/resource'
import { many } from '../lib/text'
import { Badge } from '../ui/badge'
import { Empty, In, Text } from '../ui/basics'
import { ListTable, type Column } from '../ui/table'
import { PageCell } from './pages'
import { ended, type Job, type Page } from '../types'

export function Broken({ api, base, job }: { api: string; base: string; job: Job }) {
  const list = useList<Page>(api + '/errors', (p) => p.url, ended(job.status) ? 0 : 5000)
  const columns: Column<Page>[] = [
    { head: 'What is wrong', cell: (p) => <Badge of={p.outcome} /> },
    { head: 'Link', main: true, cell: (p) => <PageCell page={p} base={base} /> },
    { head: 'Status', num: true, cell: (p) => p.status ?? '–' },
    { head: 'Linked from', main: true, cell: (p) => <From page={p} base={base} /> },
  ]
  return (
    <ListTable list={list} caption="Broken links" columns={columns} id={(p) => p.url} empty={
      <Empty title="No broken links.">
        <p>{ended(job.status) ? 'Every link that was followed led somewhere. ' : 'None so far. '}A host that asks to slow down is not broken; such pages are under <In href={base + '/pages?outcome=throttled'}>throttled</In>.</p>
      </Empty>
    } />
  )
}

function From({ page: p, base }: { page: Page; base: string }) {
  const shown = (p.linked_from ?? []).slice(0, 3)
  const rest = (p.linked_from_count ?? p.linked_from?.length ?? 0) - shown.length
  if (shown.length === 0) return <span class="muted">{p.via === 'guess' ? 'nowhere: the usual place for a sitemap' : 'a seed, or unknown'}</span>
  return <ul class="plain">{shown.map((u) => <li key={u}><In class="url" href={`${base}/explain?url=${encodeURIComponent(u)}`}><Text>{u}</Text></In></li>)}{rest > 0 && <li class="muted small">and {many(rest, 'more page')}</li>}</ul>
}
