// Addresses of views: plain paths, so that each can be bookmarked.
import { store } from './store'

const here = () => location.pathname + location.search

export const address = store(here())

export function go(to: string, replace = false) {
  if (to === here()) return
  history[replace ? 'replaceState' : 'pushState'](null, '', to)
  address.set(here())
}

export function listen() {
  addEventListener('popstate', () => address.set(here()))
  // Links inside the dashboard change the view without loading the page anew.
  addEventListener('click', (e) => {
    if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return
    const a = (e.target as Element).closest?.('a[data-in]')
    if (!(a instanceof HTMLAnchorElement)) return
    e.preventDefault()
    go(a.pathname + a.search)
    scrollTo(0, 0)
  })
}

/** The parts of the path and the query of the address shown. */
export function split(addr: string): { parts: string[]; query: URLSearchParams } {
  const u = new URL(addr, location.origin)
  return { parts: u.pathname.split('/').filter(Boolean).map(decode), query: u.searchParams }
}

function decode(s: string): string {
  try {
    return decodeURIComponent(s)
  } catch {
    return s
  }
}
