// Everything that happens to one job while somebody looks: its state, its
// figures once a second, its events and its latest pages.
import { useEffect, useRef, useState } from 'preact/hooks'
import { get, Problem } from './api'
import { follow } from './stream'
import { ended, type Job, type Live, type Maybe, type Page, type Point, type Series } from '../types'

export interface Entry { at: string; type: string; message: string }

export interface Feed {
  job?: Job
  live?: Live
  entries: Entry[] // newest first
  pages: Page[] // newest first
  data: number[][] // for the charts: times, pages/s, the six classes, 429s; all per second
  open: boolean
  problem?: Problem
}

const most = { entries: 400, pages: 60, points: 900 }

// A job of more pages is not read back page by page only to show the last few:
// the second half of an event id is the last page seen.
const manyPages = 5000
const noPages = '0.9223372036854775807'

export function useFeed(id: string, turn: number): Feed {
  const [feed, show] = useState<Feed>({ entries: [], pages: [], data: empty(), open: true })
  const now = useRef(feed)
  useEffect(() => {
    let stop = () => {}
    let over = false
    let timer = 0
    now.current = { ...now.current, entries: [], pages: [], problem: undefined }
    const change = (c: Partial<Feed>) => {
      now.current = { ...now.current, ...c }
      timer ||= window.setTimeout(() => ((timer = 0), over || show(now.current)), 200) // pages may come by the hundred
    }
    const path = '/v1/jobs/' + encodeURIComponent(id)
    const chart = () => get<Series>(path + '/series').then((s) => over || change({ data: fromSeries(s) }), () => {})
    // The stream begins with old states; they are history, so the job is asked for.
    let asking = 0
    const look = () => {
      asking ||= window.setTimeout(() => ((asking = 0), get<Job>(path).then((job) => over || change({ job }), () => {})), 100)
    }
    const begin = async () => {
      const job = await get<Job>(path)
      if (over) return
      change({ job })
      void chart()
      let before: Live | undefined
      stop = follow(path + '/events', (job.progress?.processed ?? 0) > manyPages ? noPages : '', {
        state: (open) => {
          if (open && !now.current.open) void chart() // what happened meanwhile
          change({ open })
        },
        failed: (problem) => change({ problem }),
        event(name, data) {
          const f = now.current
          if (name === 'live') {
            const live = data as Live
            change({ live, data: grow(f.data, before, live) })
            before = live
          } else if (name === 'page') {
            change({ pages: [data as Page, ...f.pages].slice(0, most.pages) })
          } else if (name === 'status' || name === 'end') {
            const job = data as Job
            if (name === 'status') change({ entries: [statusEntry(job), ...f.entries].slice(0, most.entries) })
            if (name === 'status') look()
            else change({ job })
            if (name === 'end') void chart()
          } else {
            const e = data as { at?: string; message?: string }
            change({ entries: [{ at: e.at ?? '', type: name, message: e.message ?? '' }, ...f.entries].slice(0, most.entries) })
          }
        },
      })
    }
    begin().catch((e) => over || change({ problem: e instanceof Problem ? e : new Problem(-1, 'Error', String(e)) }))
    return () => {
      over = true
      clearTimeout(timer)
      clearTimeout(asking)
      stop()
    }
  }, [id, turn])
  return feed
}

/** The event tells which state the job came into; the job itself tells when. */
function statusEntry(j: Job): Entry {
  const at = j.status === 'queued' ? j.created_at : j.status === 'running' ? j.started_at : ended(j.status) ? j.ended_at : j.updated_at
  return { at: at ?? j.updated_at ?? '', type: j.status, message: ended(j.status) ? j.error ?? '' : '' }
}

const empty = (): number[][] => Array.from({ length: 9 }, () => [])

function fromSeries(s: Series): number[][] {
  const out = empty()
  const step = s.step_seconds || 1
  for (const p of s.points ?? []) push(out, p.at, p, step)
  return out
}

function push(out: number[][], at: string, p: Omit<Point, 'at'>, seconds: number) {
  out[0]!.push(Date.parse(at) / 1000)
  out[1]!.push(p.pages_per_second ?? 0)
  for (let i = 0; i < 6; i++) out[2 + i]!.push((p.classes?.[i] ?? 0) / seconds)
  out[8]!.push(p.http_429 ?? 0)
}

/** Adds what happened between two readings. */
function grow(data: number[][], before: Live | undefined, live: Live): number[][] {
  const t = Date.parse(live.at) / 1000
  const seconds = before ? t - Date.parse(before.at) / 1000 : 0
  if (!before || seconds <= 0 || t <= (data[0]!.at(-1) ?? 0)) return data
  const delta = (a: Maybe<number>, b: Maybe<number>) => Math.max(0, (a ?? 0) - (b ?? 0))
  const next = data.map((row) => row.slice(-most.points))
  push(next, live.at, {
    pages_per_second: live.pages_per_second,
    classes: live.classes?.map((n, i) => delta(n, before.classes?.[i])),
    http_429: delta(live.progress?.http_429, before.progress?.http_429),
  }, seconds)
  return next
}
