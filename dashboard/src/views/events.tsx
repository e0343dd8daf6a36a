// What happened to a job, as it happens.
import { useState } from 'preact/hooks'
import { clock } from '../lib/time'
import { Badge } from '../ui/badge'
import { Empty, Text } from '../ui/basics'
import { Table, type Column } from '../ui/table'
import { PageCell } from './pages'
import type { Entry, Feed } from '../lib/feed'
import type { Page } from '../types'

type Row = { at: string; entry?: Entry; page?: Page }

export function Events({ feed, base }: { feed: Feed; base: string }) {
  const [pages, show] = useState(false)
  const rows: Row[] = feed.entries.map((entry) => ({ at: entry.at, entry }))
  if (pages) rows.push(...feed.pages.map((page) => ({ at: page.at ?? page.fetched_at ?? '', page })))
  rows.sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0))
  const columns: Column<Row>[] = [
    { head: 'Time', cell: (r) => <span class="num">{r.at ? clock(r.at) : '–'}</span> },
    { head: 'Event', cell: (r) => <Badge of={r.entry ? look(r.entry.type) : r.page!.outcome} label={r.entry ? r.entry.type : undefined} /> },
    { head: 'What', main: true, cell: (r) => (r.entry ? <Text>{r.entry.message || states[r.entry.type] || ''}</Text> : <PageCell page={r.page!} base={base} />) },
  ]
  return (
    <>
      <label class="check"><input type="checkbox" checked={pages} onChange={(e) => show(e.currentTarget.checked)} /> Show the latest pages too</label>
      {rows.length ? <Table caption="Events, newest first" columns={columns} rows={rows} id={(r, i) => r.at + i} /> : <Empty title="Nothing has happened yet."><p>Warnings, throttled hosts, pauses and the end are written here as they come.</p></Empty>}
    </>
  )
}

const look = (type: string) => (type === 'warning' || type === 'stalled' ? 'throttled' : type)

const states: Record<string, string> = {
  queued: 'The job was put in the queue.', running: 'The job was given a slot.', paused: 'The job was paused.', completed: 'Nothing is left to crawl.', cancelled: 'The job was cancelled.',
}
