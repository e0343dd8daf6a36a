// Something of the API that a view shows and keeps up to date. One timer per
// resource, only while the page is seen and the connection stands.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { get, Problem, withQuery } from './api'
import { connection } from './connection'
import { useStore } from './store'
import type { List } from '../types'

interface State<T> { path: string | null; data?: T; problem?: Problem }

export interface Resource<T> {
  data?: T
  problem?: Problem
  loading: boolean
  reload(): void
}

/** Loads path, and again every so many ms if `every` says so. A null path loads nothing. */
export function useResource<T>(path: string | null, every: number | ((data: T) => number) = 0): Resource<T> {
  const [state, set] = useState<State<T>>({ path: null })
  const [turn, again] = useState(0)
  const { lost, epoch } = useStore(connection)
  const pace = useRef(every)
  pace.current = every
  useEffect(() => {
    if (path === null || lost) return
    const stop = new AbortController()
    let timer = 0
    const load = async () => {
      let next = 0
      try {
        const data = await get<T>(path, { signal: stop.signal })
        set({ path, data })
        next = typeof pace.current === 'function' ? pace.current(data) : pace.current
      } catch (e) {
        if (stop.signal.aborted) return
        const problem = e instanceof Problem ? e : new Problem(-1, 'Error', String(e))
        set((s) => ({ path, data: s.path === path ? s.data : undefined, problem }))
        if (problem.status >= 500 || problem.status === 429) next = 5000
      }
      if (next && !stop.signal.aborted) timer = window.setTimeout(seen, next)
    }
    const seen = () => {
      if (!document.hidden) return void load()
      document.addEventListener('visibilitychange', seen, { once: true, signal: stop.signal })
    }
    void load()
    return () => {
      stop.abort()
      clearTimeout(timer)
    }
  }, [path, lost, epoch, turn])
  const mine = state.path === path
  return {
    data: mine ? state.data : undefined,
    problem: mine ? state.problem : undefined,
    loading: path !== null && !(mine && (state.data !== undefined || state.problem !== undefined)),
    reload: useCallback(() => again((n) => n + 1), []),
  }
}

export interface Listing<T> extends Resource<List<T>> {
  items: T[]
  more?: () => void // undefined when there are no more
}

/** A list that the API gives whole. */
export function useWhole<T>(path: string, every: number | ((d: List<T>) => number) = 0): Listing<T> {
  const all = useResource<List<T>>(path, every)
  return { ...all, items: all.data?.items ?? [] }
}

const step = 50
const most = 500 // what the API gives at once

/**
 * A list that grows by "load more". What is refreshed is one answer of as many
 * rows as are shown; rows beyond the API's largest page are fetched by cursor
 * and stay as they were.
 */
export function useList<T>(path: string | null, idOf: (row: T) => string | number, every: number | ((d: List<T>) => number) = 0): Listing<T> {
  const [size, grow] = useState({ path, n: step })
  const [tail, setTail] = useState<{ path: string | null; items: T[]; next?: string | null }>({ path, items: [] })
  const n = size.path === path ? size.n : step
  const head = useResource<List<T>>(path === null ? null : withQuery(path, { limit: n }), every)
  const last = useRef<{ path: string | null; list?: List<T> }>({ path })
  if (head.data) last.current = { path, list: head.data }
  const list = head.data ?? (last.current.path === path ? last.current.list : undefined)
  const far = tail.path === path && tail.items.length > 0 ? tail : undefined
  const seen = new Set<string | number>()
  const items = [...(list?.items ?? []), ...(far?.items ?? [])].filter((r) => !seen.has(idOf(r)) && seen.add(idOf(r)))
  const next = far ? far.next : list?.next
  const more = async () => {
    if (path === null) return
    if (n < most) return grow({ path, n: Math.min(n + (n < 200 ? step : 100), most) })
    const got = await get<List<T>>(withQuery(path, { limit: most, cursor: next })).catch(() => undefined)
    if (got) setTail({ path, items: [...(far?.items ?? []), ...(got.items ?? [])], next: got.next })
  }
  return { ...head, loading: head.loading && !list, items, more: next ? more : undefined }
}
