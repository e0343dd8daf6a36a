// What became of one URL, and why: the explain box, and the evidence.
import { useEffect, useState } from 'preact/hooks'
import { withQuery } from '../lib/api'
import { useResource } from '../lib/resource'
import { go } from '../lib/router'
import { bytes, many, plain, words } from '../lib/text'
import { clock, nanos, span } from '../lib/time'
import { Badge } from '../ui/badge'
import { Empty, Field, Out, Text, Until } from '../ui/basics'
import { Table, Wait, type Column } from '../ui/table'
import { ended, type Attempt, type Evidence, type Explanation, type Job, type List } from '../types'

export function Explain({ api, base, job, query }: { api: string; base: string; job: Job; query: URLSearchParams }) {
  const url = query.get('url') ?? ''
  const [typed, type] = useState(url)
  useEffect(() => type(url), [url])
  const submit = (e: Event) => {
    e.preventDefault()
    go(withQuery(base + '/explain', { url: typed.trim() }))
  }
  return (
    <>
      <form class="filters" onSubmit={submit}>
        <Field label="URL" class="grow">{(p) => <input {...p} type="text" inputMode="url" value={typed} spellcheck={false} placeholder={job.urls?.[0] ?? 'https://'} onInput={(e) => type(e.currentTarget.value)} />}</Field>
        <button type="submit" class="primary">Explain</button>
      </form>
      {url ? <Answer key={url} api={api} url={url} job={job} /> : (
        <Empty title="Why was this page fetched, or not?">
          <p>Type any URL, also one that the crawl has not seen: this says who named it, which rule let it in or kept it out, which line of robots.txt decided, and, if it waits, for what and until when.</p>
        </Empty>
      )}
    </>
  )
}

function Answer({ api, url, job }: { api: string; url: string; job: Job }) {
  const open = (x: Explanation) => (!ended(job.status) && (x.fate === 'waiting' || x.fate === 'in_hand' || x.fate === 'unknown') ? 2000 : 0)
  const told = useResource<Explanation>(withQuery(api + '/explain', { url }), open)
  const proofs = useResource<List<Evidence>>(withQuery(api + '/evidence', { url: told.data?.url ?? url }), told.data && open(told.data) ? 4000 : 0)
  return (
    <Wait of={told}>
      {(x) => (
        <div class="explain">
          <div class="card headline">
            <p class="lead"><Badge of={x.fate === 'ended' && x.result ? x.result.outcome : x.fate} label={words(x.fate)} /> <Text>{x.headline.charAt(0).toUpperCase() + x.headline.slice(1)}</Text></p>
            <p><Out url={x.url} /></p>
            {x.waits && <p>Waits for <strong><Text>{x.waits.for}</Text></strong>{x.waits.until && <>, {x.waits.about && 'about '}until {clock(x.waits.until)} (<Until at={x.waits.until} />)</>}</p>}
            {x.next && <p class="muted"><Text>{x.next}</Text></p>}
          </div>
          <Trail x={x} />
          {(x.requests?.length ?? 0) > 0 && <><h2>Requests</h2><Table caption="Requests for this URL" columns={requests} rows={x.requests!} id={(a, i) => a.started + i} /></>}
          <h2>Evidence</h2>
          <Wait of={proofs}>{(d) => (d.items?.length ? <Table caption="Evidence about this URL" columns={evidence} rows={d.items} id={(e, i) => e.type + i} /> : <p class="muted">Nothing was written down about this URL yet.</p>)}</Wait>
        </div>
      )}
    </Wait>
  )
}

const requests: Column<Attempt>[] = [
  { head: 'Started', cell: (a) => <span class="num">{clock(a.started)}</span> },
  { head: 'Outcome', cell: (a) => <Badge of={a.outcome} label={a.status ? `${a.status} ${words(a.outcome)}` : undefined} /> },
  { head: 'Took', num: true, cell: (a) => (a.sent ? span(Date.parse(a.ended) - Date.parse(a.started) || 0.5) : 'not sent') },
  { head: 'Waited before', cell: (a) => (a.waited_ns ? <>{nanos(a.waited_ns)} <span class="muted small"><Text>{a.waited_for}</Text></span></> : '–') },
  { head: 'Gap owed', cell: (a) => (a.gap_owed_ns ? <>{nanos(a.gap_owed_ns)} <span class="muted small"><Text>{a.gap_owed_for}</Text></span></> : '–') },
  { head: 'Note', main: true, cell: (a) => <>{a.error && <Text>{a.error}</Text>}{a.asked_until && <> asked for quiet until {clock(a.asked_until)}</>}</> },
]

const evidence: Column<Evidence>[] = [
  { head: 'What', cell: (e) => <strong><Text>{words(e.type)}</Text></strong> },
  { head: 'Says', main: true, cell: (e) => <Pairs of={e.content} /> },
  { head: 'Line', num: true, cell: (e) => e.line || '–' },
  { head: 'Sure', num: true, cell: (e) => (e.confidence != null ? Math.round(e.confidence * 100) + ' %' : '–') },
  { head: 'Time', cell: (e) => (e.at ? <span class="num">{clock(e.at)}</span> : '–') },
]

function Pairs({ of }: { of: Evidence['content'] }) {
  const list = Object.entries(of ?? {}).filter(([k, v]) => v !== null && v !== '' && k !== 'timestamp')
  return <dl class="pairs">{list.map(([k, v]) => <div key={k}><dt>{plain(k)}</dt><dd><Text>{typeof v === 'string' ? v : JSON.stringify(v)}</Text></dd></div>)}</dl>
}

const via: Record<string, string> = {
  seed: 'a seed of the crawl', link: 'as a link on', redirect: 'as the target of a redirect from', sitemap: 'in the sitemap', robots: 'as a Sitemap line in', guess: 'by looking at the usual place for a sitemap',
}

/** The same steps, in the same order, as `tiptoe explain` prints. */
function Trail({ x }: { x: Explanation }) {
  const { found: f, scope: s, robots: r, host: h, queue: q, result: o } = x
  return (
    <dl class="trail">
      {(x.changes?.length ?? 0) > 0 && <Step name="Normalised">{x.changes!.join('; ')}</Step>}
      {f && <Step name="Found">{via[f.via] ?? 'by ' + words(f.via)}{f.on && <> <Out url={f.on} /></>}{f.via !== 'seed' && <span class="muted">, {many(f.depth, 'link')} from a seed</span>}</Step>}
      {s && <Step name="Scope">{!s.ok && 'turned away: '}<Text>{s.rule}</Text></Step>}
      <Step name="robots.txt">{r ? <RobotsSays r={r} url={x.robots_url} /> : <span class="muted">not read yet: <Out url={x.robots_url} /></span>}</Step>
      {x.priority && <Step name="Priority"><Text>{x.priority.words}</Text> <span class="muted">(rank {x.priority.rank})</span></Step>}
      {q && <Step name="Queue">{many(q.ahead, 'URL')} of its host before it{q.tries > 0 && `; ${many(q.tries, 'try', 'tries')} so far`}{q.not_before && <>; its own next try not before {clock(q.not_before)}</>}</Step>}
      {h && x.fate !== 'ended' && x.fate !== 'refused' && (
        <Step name="Host">
          <Text>{h.group}</Text> is {h.state}{h.reason && <> (<Text>{h.reason}</Text>)</>}{h.until && <> until {clock(h.until)}</>}; one request every {nanos(h.gap_ns)} or so (<Text>{h.gap_for}</Text>), {h.in_flight} of {h.cap} in flight
          {!!h.learned_delay_ns && <>; learned from its 429 answers: {nanos(h.learned_delay_ns)} between requests</>}
        </Step>
      )}
      {o && <Step name="Outcome"><Text>{o.meaning}</Text>{o.error && <>: <Text>{o.error}</Text></>}{o.took_ns > 0 && <span class="muted">, {nanos(o.took_ns)}, {bytes(o.bytes)}{o.content_type && <>, <Text>{o.content_type}</Text></>}</span>}</Step>}
      {o?.title && <Step name="Title"><Text>{o.title}</Text></Step>}
      {o?.redirect_to && <Step name="Leads to"><Out url={o.redirect_to} /></Step>}
      {o && (o.links > 0 || o.nofollow || o.noindex) && <Step name="Content">{[many(o.links, 'link'), o.nofollow && 'nofollow: its links were not followed', o.noindex && 'noindex'].filter(Boolean).join(', ')}</Step>}
      {x.without && <Step name="Not seen"><Text>{x.without}</Text></Step>}
    </dl>
  )
}

const Step = ({ name, children }: { name: string; children: preact.ComponentChildren }) => <div><dt>{name}</dt><dd>{children}</dd></div>

function RobotsSays({ r, url }: { r: NonNullable<Explanation['robots']>; url: string }) {
  const verdict = (r.foreseen ? 'would be ' : '') + (r.allowed ? 'allowed' : 'disallowed')
  return (
    <>
      {r.ignored ? 'ignored, as was asked' : r.line ? <>{verdict} by line {r.line} (<code><Text>{r.rule}</Text></code>) of <Out url={url} /></> : r.rule ? <>{verdict}: <Text>{r.rule}</Text></> : <>{verdict}: no rule in <Out url={url} /> matches</>}
      <span class="muted">
        {r.fetched_at && <>, read {clock(r.fetched_at)}</>}{!!r.crawl_delay_ns && <>; it asks for {nanos(r.crawl_delay_ns)} between requests</>}
        {r.confidence > 0 && r.confidence < 1 && <>; {Math.round(r.confidence * 100)} % sure</>}{r.expired && '; the copy is too old and is fetched again first'}
      </span>
    </>
  )
}
