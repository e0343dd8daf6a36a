// The server's clock, and how times and spans are written.
import { useEffect, useState } from 'preact/hooks'

let skew = 0

/** Countdowns are about the server's time; a clock that is wrong here must not show in them. */
export function skewFrom(date: string | null) {
  const t = date ? Date.parse(date) : NaN
  if (Number.isNaN(t)) return
  const d = t + 500 - Date.now() // the header has whole seconds
  skew = Math.abs(d) > 2000 ? d : 0
}

export const now = () => Date.now() + skew

/** Redraws the caller every so often while the page is seen. */
export function useNow(every = 1000): number {
  const [t, tick] = useState(now)
  useEffect(() => {
    const id = setInterval(() => document.hidden || tick(now()), every)
    return () => clearInterval(id)
  }, [every])
  return t
}

export function span(ms: number): string {
  if (ms < 0) ms = 0
  if (ms > 0 && ms < 1) return '<1 ms'
  if (ms < 1000) return Math.round(ms) + ' ms'
  const s = ms / 1000
  if (s < 10) return (Math.round(s * 10) / 10).toString() + ' s'
  if (s < 60) return Math.round(s) + ' s'
  const whole = Math.round(s)
  const h = Math.floor(whole / 3600), m = Math.floor((whole % 3600) / 60), rest = whole % 60
  if (h >= 48) return Math.floor(h / 24) + ' d ' + (h % 24) + ' h'
  if (h > 0) return h + ' h ' + m + ' min'
  return m + ' min' + (rest ? ' ' + rest + ' s' : '')
}

export const nanos = (ns: number) => span(ns / 1e6)

export function clock(at: string | number): string {
  const d = new Date(at)
  const day = d.toLocaleDateString('en-CA') // year-month-day
  const time = d.toLocaleTimeString('en-GB')
  return day === new Date(now()).toLocaleDateString('en-CA') ? time : day + ' ' + time
}

export function ago(at: string | number, t: number): string {
  const d = t - new Date(at).getTime()
  if (d < 0) return 'in ' + span(-d)
  if (d < 5000) return 'just now'
  if (d < 60_000) return Math.floor(d / 1000) + ' s ago'
  if (d < 3_600_000) return Math.floor(d / 60_000) + ' min ago'
  if (d < 86_400_000) return Math.floor(d / 3_600_000) + ' h ago'
  return Math.floor(d / 86_400_000) + ' d ago'
}
