// Who is signed in. The key lives in sessionStorage: it ends with the tab and
// no other site can read it.
import { store } from './store'
import type { Me } from '../types'

const place = 'tiptoe.key'

export const key = store<string>(sessionStorage.getItem(place) ?? '')
export const me = store<Me | null>(null)
export const goodbye = store<string>('') // why the last session ended, if not by choice

export function signIn(k: string, who: Me) {
  sessionStorage.setItem(place, k)
  goodbye.set('')
  me.set(who)
  key.set(k)
}

export function signOut(why = '') {
  sessionStorage.removeItem(place)
  goodbye.set(why)
  me.set(null)
  key.set('')
}

/** Takes `#key=...` out of the address, so that it is neither bookmarked nor shown. */
export function keyFromAddress() {
  if (!location.hash.startsWith('#key=')) return
  let k = location.hash.slice(5)
  try {
    k = decodeURIComponent(k)
  } catch {
    // not escaped, then
  }
  history.replaceState(null, '', location.pathname + location.search)
  sessionStorage.setItem(place, k)
  me.set(null) // whoever it was
  key.set(k)
}

export function can(scope: 'write' | 'operator'): boolean {
  const has = me.get()?.key.scopes ?? []
  return has.includes('operator') || has.includes(scope)
}

/** Whether this key may order here at all: the dashboard of a crawl on the command line takes no orders and makes no keys. */
export const canOrder = () => can('write') && me.get()?.orders !== false
