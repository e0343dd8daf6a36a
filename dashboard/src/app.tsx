// The frame around every view: who is signed in, where one can go, and whether
// anybody answers.
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { get, Problem } from './lib/api'
import { connection, probe } from './lib/connection'
import { address, split } from './lib/router'
import { can, canOrder, key, me, signOut } from './lib/session'
import { useStore } from './lib/store'
import { setTheme, theme, type Theme } from './lib/theme'
import { span, useNow } from './lib/time'
import { Empty, In, Loading, ProblemBox, Sayings, Text, Title } from './ui/basics'
import { Confirm } from './ui/confirm'
import { Domains } from './views/domains'
import { JobView } from './views/job'
import { Jobs } from './views/jobs'
import { Keys } from './views/keys'
import { Machine } from './views/machine'
import { NewJob } from './views/newjob'
import { OperatorLog } from './views/log'
import { Schedules } from './views/schedules'
import { SignIn } from './views/signin'
import { TenantView, Tenants } from './views/tenants'
import { UsageView } from './views/usage'
import { Workers } from './views/workers'
import type { Me } from './types'

export function App() {
  const k = useStore(key)
  return (
    <>
      {k ? <SignedIn /> : <SignIn />}
      <Sayings />
      <Confirm />
    </>
  )
}

function SignedIn() {
  const who = useStore(me)
  const { epoch } = useStore(connection)
  const [problem, fail] = useState<Problem>()
  useEffect(() => {
    if (me.get()) return
    get<Me>('/v1/me').then((m) => (fail(undefined), me.set(m)), fail)
  }, [who, epoch])
  return (
    <div class="frame">
      <a class="skip" href="#main">Skip to the content</a>
      <Nav who={who} />
      <div class="stage">
        <Lost />
        <main id="main" tabIndex={-1}>{who ? <Route /> : problem ? <ProblemBox problem={problem} /> : <Loading />}</main>
      </div>
    </div>
  )
}

function Nav({ who }: { who: Me | null }) {
  const [open, show] = useState(false)
  const at = useStore(address)
  useEffect(() => show(false), [at])
  const here = split(at).parts
  const item = (to: string, text: ComponentChildren, now: boolean) => <li><In href={to} aria-current={now ? 'page' : undefined}>{text}</In></li>
  const on = (name: string) => here[0] === name
  return (
    <header class={'side' + (open ? ' open' : '')}>
      <In href="/jobs" class="brand"><Mark />tiptoe</In>
      <button type="button" class="menu" aria-expanded={open} aria-controls="nav" onClick={() => show(!open)}>Menu</button>
      <nav id="nav" aria-label="Main">
        <ul>
          {item('/jobs', 'Jobs', (on('jobs') || here.length === 0) && here[1] !== 'new')}
          {who && canOrder() && item('/jobs/new', 'New job', on('jobs') && here[1] === 'new')}
          {item('/schedules', 'Schedules', on('schedules'))}
          {item('/usage', 'Usage and limits', on('usage'))}
          {item('/domains', 'Domain knowledge', on('domains'))}
          {item('/machine', 'Machine', on('machine'))}
          {item('/keys', 'Keys', on('keys'))}
        </ul>
        {who && can('operator') && (
          <>
            <p class="over" id="op">Operator</p>
            <ul aria-labelledby="op">
              {item('/workers', 'Workers', on('workers'))}
              {item('/tenants', 'Tenants', on('tenants'))}
              {item('/operator-log', 'Operator log', on('operator-log'))}
            </ul>
          </>
        )}
        <div class="who">
          {who && <p>{who.tenant ? <><Text>{who.tenant.name || who.tenant.id}</Text><span class="muted"> · plan <Text>{who.tenant.plan}</Text></span></> : 'Operator'}<br /><span class="muted">key <Text>{who.key.name || who.key.id}</Text></span></p>}
          <ThemeSwitch />
          <button type="button" class="quiet" onClick={() => signOut()}>Sign out</button>
        </div>
      </nav>
    </header>
  )
}

export const Mark = () => (
  <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
    <g fill="currentColor">
      <ellipse cx="11.5" cy="20" rx="5" ry="7" transform="rotate(-10 11.5 20)" />
      <circle cx="5.6" cy="10.6" r="2.1" /><circle cx="9.9" cy="8.3" r="2.3" /><circle cx="14.7" cy="8.8" r="2" />
      <circle cx="24" cy="11.5" r="2.6" /><circle cx="24.4" cy="20.4" r="1.9" opacity=".75" /><circle cx="24.6" cy="27.4" r="1.3" opacity=".5" />
    </g>
  </svg>
)

function ThemeSwitch() {
  const t = useStore(theme)
  const names: [Theme, string][] = [['system', 'Auto'], ['light', 'Light'], ['dark', 'Dark']]
  return (
    <div class="switch" role="group" aria-label="Colours">
      {names.map(([v, name]) => <button key={v} type="button" aria-pressed={t === v} onClick={() => setTheme(v)}>{name}</button>)}
    </div>
  )
}

function Lost() {
  const { lost, retryAt } = useStore(connection)
  return lost ? <LostFor until={retryAt} /> : null
}

function LostFor({ until }: { until: number }) {
  useNow(500)
  const left = Math.max(0, Math.ceil((until - Date.now()) / 1000))
  return (
    <div class="box bad lost" role="alert">
      <strong>No connection to tiptoe.</strong> What you see is the last that was known. <span aria-hidden="true">{left > 0 ? `Trying again in ${span(left * 1000)}.` : 'Trying…'}</span>{' '}
      <button type="button" class="link" onClick={() => void probe()}>Try now</button>
    </div>
  )
}

function Route() {
  const { parts: [first = 'jobs', second, third], query } = split(useStore(address))
  switch (first) {
    case 'jobs':
      if (second === 'new') return <NewJob query={query} />
      if (second) return <JobView key={second} id={second} tab={third ?? 'overview'} query={query} />
      return <Jobs query={query} />
    case 'schedules': return <Schedules />
    case 'usage': return <UsageView />
    case 'domains': return <Domains query={query} />
    case 'machine': return <Machine />
    case 'keys': return <Keys />
    case 'tenants': return second ? <TenantView key={second} id={second} /> : <Tenants />
    case 'operator-log': return <OperatorLog />
    case 'workers': return <Workers />
  }
  return (
    <>
      <Title text="Nothing here" />
      <Empty title="This address leads nowhere."><p><In href="/jobs">Go to the jobs</In></p></Empty>
    </>
  )
}
