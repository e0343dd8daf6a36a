// What the month has cost, and what limits there are.
import { useState } from 'preact/hooks'
import { useResource } from '../lib/resource'
import { count } from '../lib/text'
import { now, span } from '../lib/time'
import { Field, Select, Text, Title, Until } from '../ui/basics'
import { Bar } from '../ui/gauge'
import { Table, Wait, type Column } from '../ui/table'
import type { Limits, List, Plan, Usage } from '../types'

const orNone = (n: number | null | undefined) => (n ? count(n) : 'no limit')

/** This month and the five before it, by UTC. */
function months(): [string, string][] {
  const t = new Date(now())
  return Array.from({ length: 6 }, (_, i) => {
    const m = new Date(Date.UTC(t.getUTCFullYear(), t.getUTCMonth() - i, 1)).toISOString().slice(0, 7)
    return [m, i ? m : m + ' (now)']
  })
}

export function UsageView() {
  const [month, choose] = useState(months()[0]![0])
  const limits = useResource<Limits>('/v1/limits', 15_000)
  const usage = useResource<Usage>('/v1/usage?month=' + month, month === months()[0]![0] ? 15_000 : 0)
  const plans = useResource<List<Plan>>('/v1/plans')
  return (
    <>
      <Title text="Usage and limits"><Field label="Month" class="inline">{(p) => <Select {...p} value={month} options={months()} onValue={choose} />}</Field></Title>
      <Wait of={usage}>{(u) => <Quota usage={u} />}</Wait>
      <Wait of={limits}>
        {(l) => (
          <div class="two">
            <div class="card">
              <h2>Safety caps</h2>
              <p class="muted small">Set by the operator. Nothing you order and no plan can lift them.</p>
              <dl class="pairs">
                <div><dt>Pages per crawl</dt><dd>{orNone(l.safety.max_pages_per_crawl)}</dd></div>
                <div><dt>Crawls at once</dt><dd>{orNone(l.safety.max_concurrent_crawls)}</dd></div>
                <div><dt>Time per crawl</dt><dd>{l.safety.crawl_timeout_ms ? span(l.safety.crawl_timeout_ms) : 'no limit'}</dd></div>
              </dl>
            </div>
            <div class="card">
              <h2>Your plan: <Text>{l.plan.name}</Text></h2>
              <p class="muted small">Limits are applied in this order: <Text>{l.order}</Text>.</p>
              <dl class="pairs">
                <div><dt>Pages per crawl</dt><dd>{orNone(l.plan.pages_per_crawl)}</dd></div>
                <div><dt>Crawls at once</dt><dd>{orNone(l.plan.concurrent_crawls)}</dd></div>
                <div><dt>At once per host</dt><dd>{orNone(l.plan.per_host)}</dd></div>
                <div><dt>Schedules</dt><dd>{count(l.plan.schedules)}</dd></div>
                <div><dt>Pages a month</dt><dd>{orNone(l.plan.monthly_pages)}</dd></div>
              </dl>
            </div>
          </div>
        )}
      </Wait>
      <h2>Plans</h2>
      <Wait of={plans}>{(d) => <Table caption="Plans" columns={columns(limits.data?.plan.name)} rows={d.items ?? []} id={(p) => p.name} />}</Wait>
    </>
  )
}

function Quota({ usage: u }: { usage: Usage }) {
  const spent = u.used + u.reserved
  const share = u.quota ? spent / u.quota : 0
  return (
    <div class="card quota">
      <h2>Pages in {u.month}</h2>
      {u.quota ? (
        <>
          <p class="lead num">{count(spent)} of {count(u.quota)} <span class="muted">({Math.round(share * 100)} %)</span></p>
          <Bar value={u.used} extra={u.reserved} max={u.quota} marks={[0.8, 0.95]} />
          <div class="scale" aria-hidden="true"><span class="at80">80 %</span><span class="at95">95 %</span></div>
        </>
      ) : <p class="lead num">{count(spent)} <span class="muted">no monthly limit</span></p>}
      <dl class="pairs">
        <div><dt>Used by jobs that ended</dt><dd>{count(u.used)}</dd></div>
        <div><dt>Set aside for jobs that have not</dt><dd>{count(u.reserved)}</dd></div>
        {u.quota && <div><dt>Left</dt><dd>{count(u.left)}</dd></div>}
        {u.resets_at && <div><dt>Begins anew</dt><dd><Until at={u.resets_at} /></dd></div>}
      </dl>
      {share >= 1 ? <p class="box bad">Nothing is left: new jobs are refused until the quota begins anew.</p> : share >= 0.8 && <p class="box warn">{share >= 0.95 ? 'Nearly everything' : 'Most of it'} is used or set aside.</p>}
    </div>
  )
}

const columns = (own?: string): Column<Plan>[] => [
  { head: 'Plan', main: true, cell: (p) => <><strong><Text>{p.name}</Text></strong>{p.name === own && <span class="muted"> · yours</span>}</> },
  { head: 'Pages per crawl', num: true, cell: (p) => orNone(p.pages_per_crawl) },
  { head: 'Crawls at once', num: true, cell: (p) => orNone(p.concurrent_crawls) },
  { head: 'At once per host', num: true, cell: (p) => orNone(p.per_host) },
  { head: 'Schedules', num: true, cell: (p) => count(p.schedules) },
  { head: 'Pages a month', num: true, cell: (p) => orNone(p.monthly_pages) },
]
