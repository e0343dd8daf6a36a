// A new job: says what it would get, and why, before it is started.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { call, Problem } from '../lib/api'
import { go } from '../lib/router'
import { can, canOrder } from '../lib/session'
import { Empty, Field, ProblemBox, say, Select, Title } from '../ui/basics'
import { PreviewBox } from './preview'
import type { Job, JobRequest, Preview, Schedule } from '../types'

const blank = {
  urls: '', type: 'crawl', profile: '', pages: '', seconds: '', depth: '', scope: 'domain', include: '', exclude: '', seeding: '',
  per_host: '', concurrency: '', delay_ms: '', priority: '', webhook: '', label: '', repeat: '', cron: '',
}
type Form = typeof blank

const lines = (s: string) => s.split(/\r?\n/).map((l) => l.trim()).filter(Boolean)
const figure = (s: string) => (s.trim() === '' ? undefined : Number(s))

/** The order as the API takes it; what is left empty is left out. */
function order(f: Form): JobRequest {
  const urls = lines(f.urls)
  const some = (l: string[]) => (l.length ? l : undefined)
  return {
    ...(urls.length === 1 ? { url: urls[0] } : { urls }),
    type: f.type, profile: f.profile || undefined, pages: figure(f.pages), seconds: figure(f.seconds), depth: figure(f.depth), scope: f.scope,
    include: some(lines(f.include)), exclude: some(lines(f.exclude)), seeding: f.seeding || undefined, per_host: figure(f.per_host), concurrency: figure(f.concurrency), delay_ms: figure(f.delay_ms),
    priority: figure(f.priority), webhook: f.webhook.trim() || undefined, label: f.label.trim() || undefined,
  }
}

/** What a browser can see to be wrong; the server looks at everything again. */
function mistakes(f: Form): Record<string, string> {
  const wrong: Record<string, string> = {}
  for (const k of ['pages', 'seconds', 'depth', 'per_host', 'concurrency', 'delay_ms', 'priority'] as const) {
    const n = figure(f[k])
    if (n !== undefined && Number.isNaN(n)) wrong[k] = 'This is not a number.'
    else if (n !== undefined && k !== 'seconds' && !Number.isInteger(n)) wrong[k] = 'A whole number, please.'
  }
  return wrong
}

/** Names one order, so that a click that is sent twice starts one job. */
const newName = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, '0')).join('')

export function NewJob({ query }: { query: URLSearchParams }) {
  const [form, set] = useState<Form>({ ...blank, urls: query.get('url') ?? '', repeat: query.get('repeat') ?? '' })
  const [refused, refuse] = useState<Problem>()
  const [busy, work] = useState(false)
  const name = useRef(newName())
  const { preview, problem } = usePreview(form)
  const wrong = useMemo(() => mistakes(form), [form])
  const at = refused ?? (problem?.status === 422 || problem?.status === 400 ? problem : undefined)
  const fault = (k: string) => wrong[k] ?? at?.fields[k] ?? (k === 'urls' ? at?.fields.url : undefined) ?? (k === 'cron' ? at?.fields.rule : at?.fields['job.' + k])
  const change = (k: keyof Form) => (v: string) => {
    set((f) => ({ ...f, [k]: v }))
    refuse(undefined)
    name.current = newName()
  }
  const text = (k: keyof Form) => ({ value: form[k], onInput: (e: { currentTarget: HTMLInputElement | HTMLTextAreaElement }) => change(k)(e.currentTarget.value) })
  if (can('write') && !canOrder()) return <><Title text="New job" /><Empty title="This is the dashboard of one crawl."><p>It takes no orders; tiptoe serve does.</p></Empty></>
  if (!can('write')) return <><Title text="New job" /><Empty title="This key can only read."><p>Sign in with a key that has the scope “write” to start jobs.</p></Empty></>

  const submit = async (e: Event) => {
    e.preventDefault()
    if (busy) return
    if (lines(form.urls).length === 0) return refuse(new Problem(0, 'Where to begin?', 'Enter at least one address.', { urls: 'Enter at least one address, such as example.com.' }))
    if (Object.keys(wrong).length) return
    work(true)
    refuse(undefined)
    const rule = form.repeat === 'cron' ? form.cron.trim() : form.repeat
    try {
      if (rule || form.repeat) {
        await call<Schedule>('POST', '/v1/schedules', { name: form.label.trim() || lines(form.urls)[0], rule, job: order(form), enabled: true })
        say('The schedule is set.')
        go('/schedules')
      } else {
        const job = await call<Job>('POST', '/v1/jobs', order(form), { headers: { 'Idempotency-Key': name.current } })
        go('/jobs/' + encodeURIComponent(job.id))
      }
    } catch (err) {
      refuse(err instanceof Problem ? err : new Problem(-1, 'Error', String(err)))
      work(false)
    }
  }
  return (
    <>
      <Title text="New job" />
      <form class="split" onSubmit={submit} noValidate>
        <div class="fields">
          <Field label="Where to begin" error={fault('urls')} class="wide" hint="One address a line.">
            {(p) => <textarea {...p} {...text('urls')} rows={Math.min(8, Math.max(2, form.urls.split('\n').length))} spellcheck={false} autocapitalize="off" placeholder="https://example.com/" onKeyDown={enterSubmits} />}
          </Field>
          <Field label="Type" error={fault('type')} hint={form.type === 'warm' ? 'Asks again for what a cache did not have, and records both timings.' : 'Follows links.'}>
            {(p) => <Select {...p} value={form.type} options={[['crawl', 'Crawl'], ['warm', 'Warm a cache']]} onValue={change('type')} />}
          </Field>
          <Field label="Profile" error={fault('profile')} hint="A bundle of defaults; what you set here wins over it.">
            {(p) => <Select {...p} value={form.profile} options={[['', 'Default'], ['guarded', 'guarded: small and safe'], ['polite', 'polite: no end but its own'], ['audit', 'audit: look at one site'], ['bulk', 'bulk: many hosts, adaptive']]} onValue={change('profile')} />}
          </Field>
          <Field label="Pages at most" error={fault('pages')}>{(p) => <input {...p} {...text('pages')} inputMode="numeric" placeholder="by profile" />}</Field>
          <Field label="Depth at most" error={fault('depth')} hint="Links away from where it begins.">{(p) => <input {...p} {...text('depth')} inputMode="numeric" placeholder="no limit" />}</Field>
          <Field label="Scope" error={fault('scope')}>
            {(p) => <Select {...p} value={form.scope} options={[['domain', 'The domain and its hosts'], ['host', 'This host only'], ['any', 'Anywhere links lead']]} onValue={change('scope')} />}
          </Field>
          <Field label="Repeat" error={form.repeat === 'cron' ? undefined : fault('cron')} hint={form.repeat ? 'Makes a schedule; the first job starts when it is due.' : undefined}>
            {(p) => <Select {...p} value={form.repeat} options={[['', 'Once, now'], ['6h', 'Every 6 hours'], ['12h', 'Every 12 hours'], ['24h', 'Every day'], ['48h', 'Every other day'], ['cron', 'By a cron rule…']]} onValue={change('repeat')} />}
          </Field>
          {form.repeat === 'cron' && (
            <Field label="Cron rule" error={fault('cron')} hint="Minute, hour, day, month, weekday; UTC.">{(p) => <input {...p} {...text('cron')} placeholder="0 3 * * 1" spellcheck={false} />}</Field>
          )}
          <Field label="Only URLs that match" error={fault('include')} hint="One a line: /path, a glob with *, re:REGEXP, or part of the URL.">{(p) => <textarea {...p} {...text('include')} rows={2} spellcheck={false} />}</Field>
          <Field label="No URL that matches" error={fault('exclude')}>{(p) => <textarea {...p} {...text('exclude')} rows={2} spellcheck={false} />}</Field>
          <details class="wide" open={['seconds', 'per_host', 'concurrency', 'delay_ms', 'priority', 'webhook', 'label', 'seeding'].some(fault) || undefined}>
            <summary>More</summary>
            <div class="fields">
              <Field label="Label" error={fault('label')} hint="A name for people.">{(p) => <input {...p} {...text('label')} maxLength={200} />}</Field>
              <Field label="Priority" error={fault('priority')} hint="From −10 to 10, among your own jobs that wait.">{(p) => <input {...p} {...text('priority')} inputMode="numeric" placeholder="0" />}</Field>
              <Field label="Seconds at most" error={fault('seconds')} hint="From the moment it is given its slot.">{(p) => <input {...p} {...text('seconds')} inputMode="decimal" placeholder="by profile" />}</Field>
              <Field label="Requests at once per host" error={fault('per_host')}>{(p) => <input {...p} {...text('per_host')} inputMode="numeric" placeholder="by profile" />}</Field>
              <Field label="Requests at once in all" error={fault('concurrency')} hint="Over all hosts and workers.">{(p) => <input {...p} {...text('concurrency')} inputMode="numeric" placeholder="no limit" />}</Field>
              <Field label="Pause between requests (ms)" error={fault('delay_ms')} hint="robots.txt and what was learned may only lengthen it.">{(p) => <input {...p} {...text('delay_ms')} inputMode="numeric" placeholder="by profile" />}</Field>
              <Field label="URLs besides links" error={fault('seeding')}>{(p) => <Select {...p} value={form.seeding} options={[['', 'From sitemaps'], ['none', 'None']]} onValue={change('seeding')} />}</Field>
              <Field label="Webhook" error={fault('webhook')} class="wide" hint="Told, signed, when the job ends.">{(p) => <input {...p} {...text('webhook')} type="url" placeholder="https://" spellcheck={false} />}</Field>
            </div>
          </details>
        </div>
        <aside class="panel" aria-label="What this job would get">
          <PreviewBox preview={preview} problem={problem} waiting={lines(form.urls).length === 0} />
          <ProblemBox problem={refused} />
          <button class="primary big" type="submit" disabled={busy}>{busy ? 'Sending…' : form.repeat ? 'Set the schedule' : 'Start the job'}</button>
        </aside>
      </form>
    </>
  )
}

/** Enter starts the job; Shift+Enter begins another line. */
function enterSubmits(e: KeyboardEvent) {
  if (e.key !== 'Enter' || e.shiftKey || e.isComposing) return
  e.preventDefault()
  ;(e.target as HTMLTextAreaElement).form?.requestSubmit()
}

function usePreview(form: Form): { preview?: Preview; problem?: Problem } {
  const [state, set] = useState<{ preview?: Preview; problem?: Problem }>({})
  const asked = JSON.stringify(order(form))
  const unfit = lines(form.urls).length === 0 || Object.keys(mistakes(form)).length > 0
  useEffect(() => {
    if (unfit) return set({})
    const stop = new AbortController()
    const t = setTimeout(() => {
      call<Preview>('POST', '/v1/limits/preview', JSON.parse(asked), { signal: stop.signal }).then(
        (preview) => set({ preview }),
        (e) => stop.signal.aborted || set({ problem: e instanceof Problem ? e : new Problem(-1, 'Error', String(e)) }),
      )
    }, 350)
    return () => {
      clearTimeout(t)
      stop.abort()
    }
  }, [asked, unfit])
  return state
}
