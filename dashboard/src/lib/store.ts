// A value that components watch. Nothing more is shared between views.
import { useEffect, useState } from 'preact/hooks'

export interface Store<T> {
  get(): T
  set(v: T): void
  watch(f: () => void): () => void
}

export function store<T>(value: T): Store<T> {
  const watchers = new Set<() => void>()
  return {
    get: () => value,
    set(v) {
      if (Object.is(v, value)) return
      value = v
      for (const f of [...watchers]) f()
    },
    watch(f) {
      watchers.add(f)
      return () => void watchers.delete(f)
    },
  }
}

export function useStore<T>(s: Store<T>): T {
  const [seen, show] = useState(() => s.get())
  useEffect(() => {
    const look = () => show(() => s.get())
    look() // it may have changed between drawing and watching
    return s.watch(look)
  }, [s])
  return seen
}
