// How figures are written, and what is done to strangers' text before it is
// shown. It is only ever shown as text; this makes what is invisible visible.
import type { Maybe } from '../types'

const unknown = '–'
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })

export const count = (n: Maybe<number>) => (n === null || n === undefined ? unknown : whole.format(n))

export function rate(n: Maybe<number>): string {
  if (n === null || n === undefined) return unknown
  return n >= 100 ? whole.format(n) : n.toFixed(n < 10 ? 1 : 0)
}

export function bytes(n: Maybe<number>): string {
  if (n === null || n === undefined) return unknown
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let i = 0
  for (; n >= 1000 && i < units.length - 1; i++) n /= 1000
  return (i === 0 || n >= 100 ? whole.format(n) : n.toFixed(1)) + ' ' + units[i]
}

export const many = (n: number, one: string, more = one + 's') => whole.format(n) + ' ' + (n === 1 ? one : more)

export function ordinal(n: number): string {
  const tens = n % 100
  if (tens >= 11 && tens <= 13) return n + 'th'
  return n + (['th', 'st', 'nd', 'rd'][n % 10] ?? 'th')
}

/** Words of the API for people: not_found is "not found". */
export const words = (s: string) => s.replaceAll('_', ' ')

// Control characters, and those that turn the direction of writing around: a
// title could otherwise make a URL read backwards.
const invisible = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g

export const plain = (s: string) => s.replace(invisible, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'))

/** The address if a browser may be sent there, else nothing: javascript: and data: are text. */
export function webAddress(s: string): string | undefined {
  try {
    const u = new URL(s)
    return u.protocol === 'https:' || u.protocol === 'http:' ? u.href : undefined
  } catch {
    return undefined
  }
}
