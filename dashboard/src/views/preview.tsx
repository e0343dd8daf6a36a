// The limits a job gets or has, and who set them.
import { count, ordinal } from '../lib/text'
import { span } from '../lib/time'
import { Text } from '../ui/basics'
import type { Problem } from '../lib/api'
import type { Effective, Preview } from '../types'

const by: Record<string, string> = {
  safety: 'a safety cap of the operator', plan: 'your plan', usage: 'what is left of the month', request: 'as asked', profile: 'its profile', '': 'no limit',
}

const whose = (who: string) => by[who] ?? who

export function LimitTable({ limits: l, caption }: { limits: Effective; caption: string }) {
  const rows: [string, string, string][] = [
    ['Pages', l.pages ? count(l.pages) : 'no limit', l.pages ? whose(l.pages_by) : ''],
    ['Time', l.time_ms ? span(l.time_ms) : 'no limit', l.time_ms ? whose(l.time_by) : ''],
    ['At once per host', l.per_host ? count(l.per_host) : '–', l.reasons?.some((r) => r.limit === 'per_host') ? 'your plan' : ''],
  ]
  return (
    <>
      <table class="facts">
        <caption class="sr">{caption}</caption>
        <tbody>{rows.map(([name, value, who]) => <tr key={name}><th scope="row">{name}</th><td><strong class="num">{value}</strong>{who && <span class="muted small">{who}</span>}</td></tr>)}</tbody>
      </table>
      {(l.reasons?.length ?? 0) > 0 && <ul class="reasons">{l.reasons!.map((r) => <li key={r.limit}><Text>{r.message}</Text></li>)}</ul>}
    </>
  )
}

export function PreviewBox({ preview: p, problem, waiting }: { preview?: Preview; problem?: Problem; waiting: boolean }) {
  return (
    <div aria-live="polite">
      <h2>What it would get</h2>
      {waiting && <p class="muted">Enter an address, and this says how far the crawl may go and who decides that, before anything starts.</p>}
      {!waiting && !p && !problem && <p class="muted">Asking…</p>}
      {problem && <p class={problem.status === 422 ? 'muted' : 'box bad'}>{problem.status === 422 ? 'Something above is not right yet: ' : ''}<Text>{problem.detail || problem.title}</Text></p>}
      {p && <LimitTable limits={p.limits} caption="Limits this job would get" />}
      {p && !p.ok && <p class="box bad"><Text>{p.message || 'This job would be refused.'}</Text></p>}
      {p?.ok && p.message && <p class="small"><Text>{p.message}</Text></p>}
      {p?.ok && <p class="small">{p.position && p.position > 1 ? `It would be ${ordinal(p.position)} in the queue.` : p.position === 1 ? 'It would be next in the queue.' : 'It would start at once.'}</p>}
    </div>
  )
}
