// The small parts every view is made of.
import type { AnchorHTMLAttributes, ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { Problem } from '../lib/api'
import { store, useStore } from '../lib/store'
import { plain, webAddress } from '../lib/text'
import { ago, clock, span, useNow } from '../lib/time'
import type { Maybe } from '../types'

/** A heading that is focused when its view opens, so that screen readers say where one is. */
export function Title({ text, children }: { text: string; children?: ComponentChildren }) {
  const h = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = plain(text) + ' · tiptoe'
    if (document.activeElement === document.body || document.activeElement === null || document.activeElement.closest('nav, main')) h.current?.focus()
  }, [text])
  return (
    <div class="title">
      <h1 tabIndex={-1} ref={h}><Text>{text}</Text></h1>
      {children}
    </div>
  )
}

/** Text from outside. */
export const Text = ({ children }: { children: Maybe<string> }) => <bdi>{plain(children ?? '')}</bdi>

/** A URL from outside: a link only if it leads to the web. */
export function Out({ url, children }: { url: string; children?: string }) {
  const href = webAddress(url)
  const text = <Text>{children ?? url}</Text>
  return href ? <a class="url" href={href} target="_blank" rel="noreferrer noopener">{text}</a> : <span class="url">{text}</span>
}

export const In = (p: AnchorHTMLAttributes) => <a data-in {...p} />

export function When({ at, none = '–' }: { at: Maybe<string>; none?: string }) {
  const t = useNow(5000)
  return at ? <time dateTime={at} title={clock(at)}>{ago(at, t)}</time> : <>{none}</>
}

/** Counts down to a time. */
export function Until({ at }: { at: Maybe<string> }) {
  const t = useNow(1000)
  if (!at) return <>–</>
  const left = new Date(at).getTime() - t
  return <time dateTime={at} title={clock(at)} class="num">{left > 0 ? 'in ' + span(left < 10_000 ? Math.ceil(left / 1000) * 1000 : left) : 'now'}</time>
}

export function ProblemBox({ problem, retry }: { problem: Maybe<Problem>; retry?: () => void }) {
  if (!problem) return null
  return (
    <div class="box bad" role="alert">
      <strong><Text>{problem.title}</Text></strong> <Text>{problem.detail}</Text>
      {retry && <> <button type="button" class="link" onClick={retry}>Try again</button></>}
    </div>
  )
}

export const Empty = ({ title, children }: { title: string; children?: ComponentChildren }) => (
  <div class="empty">
    <p class="lead">{title}</p>
    {children}
  </div>
)

export const Loading = () => <p class="muted" role="status">Loading…</p>

interface FieldProps {
  label: string
  hint?: ComponentChildren
  error?: Maybe<string>
  class?: string
  children: (p: { id: string; 'aria-describedby'?: string; 'aria-invalid'?: 'true' }) => ComponentChildren
}

/** A labelled control with its hint and what is wrong with it. */
export function Field({ label, hint, error, children, ...rest }: FieldProps) {
  const id = useId()
  const about = [error && id + 'e', hint && id + 'h'].filter(Boolean).join(' ')
  return (
    <div class={'field ' + (rest.class ?? '')}>
      <label for={id}>{label}</label>
      {children({ id, ...(about && { 'aria-describedby': about }), ...(error && { 'aria-invalid': 'true' as const }) })}
      {error && <p class="error" id={id + 'e'}><Text>{error}</Text></p>}
      {hint && <p class="hint" id={id + 'h'}>{hint}</p>}
    </div>
  )
}

interface SelectProps {
  value: string
  options: [value: string, label: string][]
  onValue: (v: string) => void
  [attr: string]: unknown
}

export const Select = ({ value, options, onValue, ...rest }: SelectProps) => (
  <select {...rest} value={value} onChange={(e) => onValue((e.target as HTMLSelectElement).value)}>
    {options.map(([v, label]) => <option key={v} value={v} selected={v === value}>{label}</option>)}
  </select>
)

/** One sentence to everybody, screen readers included; it goes away by itself. */
const said = store<{ text: string; n: number } | null>(null)
let hush = 0

export function say(text: string) {
  said.set({ text, n: (said.get()?.n ?? 0) + 1 })
  clearTimeout(hush)
  hush = window.setTimeout(() => said.set(null), 6000)
}

export function Sayings() {
  const s = useStore(said)
  return <div class="sayings" role="status" aria-live="polite">{s && <p key={s.n}><Text>{s.text}</Text></p>}</div>
}

/** Says what went wrong with something a button did. */
export const sayProblem = (e: unknown) => say(e instanceof Problem ? e.detail || e.title : String(e))
