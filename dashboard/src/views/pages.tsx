// The pages of a job, with search.
import { useEffect, useState } from 'preact/hooks'
import { withQuery } from '../lib/api'
import { useList } from '../lib/resource'
import { go } from '../lib/router'
import { bytes, count, words } from '../lib/text'
import { span } from '../lib/time'
import { Badge } from '../ui/badge'
import { Empty, Field, In, Select, Text, When } from '../ui/basics'
import { ListTable, type Column } from '../ui/table'
import { ended, type Job, type Page } from '../types'

// The closed list of internal/outcome, but for what never stays.
const outcomes = [
  'ok', 'redirect', 'not_modified', 'not_found', 'gone', 'client_error', 'throttled', 'blocked', 'server_error', 'timeout', 'dns', 'connect', 'tls', 'protocol',
  'refused_by_guard', 'too_large', 'redirect_limit', 'robots', 'scope', 'trap', 'budget', 'parked', 'cancelled', 'poison',
]

export function Pages({ api, base, job, query }: { api: string; base: string; job: Job; query: URLSearchParams }) {
  const filter = { q: query.get('q') ?? '', outcome: query.get('outcome') ?? '', kind: query.get('kind') ?? '' }
  const [typed, type] = useState(filter.q)
  const choose = (change: Partial<typeof filter>) => go(withQuery(base + '/pages', { ...filter, ...change }), true)
  useEffect(() => {
    const t = setTimeout(() => typed !== filter.q && choose({ q: typed }), 300)
    return () => clearTimeout(t)
  }, [typed])
  const list = useList<Page>(withQuery(api + '/pages', filter), (p) => p.url, ended(job.status) ? 0 : 3000)
  const columns: Column<Page>[] = [
    { head: 'Outcome', cell: (p) => <Badge of={p.outcome} /> },
    { head: 'Page', main: true, cell: (p) => <PageCell page={p} base={base} /> },
    { head: 'Status', num: true, cell: (p) => p.status ?? '–' },
    { head: 'Time', num: true, cell: (p) => (p.ms != null ? span(p.ms) : '–') },
    { head: 'Size', num: true, cell: (p) => bytes(p.bytes) },
    { head: 'Depth', num: true, cell: (p) => count(p.depth) },
    { head: 'When', cell: (p) => <When at={p.fetched_at ?? p.at} /> },
  ]
  return (
    <>
      <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}>
        <Field label="Search" class="grow">{(p) => <input {...p} type="search" value={typed} placeholder="Part of a URL" onInput={(e) => type(e.currentTarget.value)} />}</Field>
        <Field label="Outcome">{(p) => <Select {...p} value={filter.outcome} options={[['', 'All'], ...outcomes.map((o): [string, string] => [o, words(o)])]} onValue={(outcome) => choose({ outcome })} />}</Field>
        <Field label="Kind">{(p) => <Select {...p} value={filter.kind} options={[['', 'All'], ['page', 'Pages'], ['sitemap', 'Sitemaps']]} onValue={(kind) => choose({ kind })} />}</Field>
      </form>
      <ListTable list={list} caption="Pages of this job" columns={columns} id={(p) => p.url} empty={
        Object.values(filter).some(Boolean)
          ? <Empty title="No page fits these filters." />
          : <Empty title="No pages yet."><p>Each URL appears here once it has ended: fetched, redirected, refused by robots.txt, broken. Open one to see the evidence.</p></Empty>
      } />
    </>
  )
}

/** Opens the evidence; the title is a stranger's, so it is text. */
export function PageCell({ page: p, base }: { page: Page; base: string }) {
  return (
    <>
      {p.title && <div class="ptitle"><Text>{p.title}</Text></div>}
      <In class="url" href={`${base}/explain?url=${encodeURIComponent(p.url)}`}><Text>{p.url}</Text></In>
      {p.redirect_to && <div class="small muted">to <span class="url"><Text>{p.redirect_to}</Text></span></div>}
      {p.error && <div class="small muted"><Text>{p.error}</Text></div>}
    </>
  )
}
