import { createRequire } from 'node:module'
import { readFileSync } from 'node:fs'
import { api, fits, picture, signedIn, until, want, world } from './world.mjs'

export const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** What axe finds, as sentences. Its own script comes by the debugger, past the content policy. */
export async function faults(page, contrast) {
  const found = await page.evaluate(async (contrast) => {
    const rules = { 'color-contrast': { enabled: contrast } } // slow, so not everywhere
    return (await window.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'], rules })).violations
  }, contrast)
  return found.map((v) => `${v.id}: ${v.help} (${v.nodes[0].html.slice(0, 160)} ${v.nodes[0].any[0]?.message ?? ''})`)
}

export async function everyView() {
  const job = (await api('GET', '/v1/jobs?limit=100')).items.find((j) => j.urls.includes(world.seeds.busy))
  const tenant = (await api('GET', '/v1/tenants')).items[0]
  const views = [
    '/jobs', '/jobs/new', '/jobs/' + job.id, ...['hosts', 'pages', 'broken', 'explain?url=' + encodeURIComponent(world.seeds.museum), 'events', 'webhook'].map((t) => `/jobs/${job.id}/${t}`),
    '/schedules', '/usage', '/domains', '/machine', '/keys', '/workers', '/tenants', ...(tenant ? ['/tenants/' + tenant.id] : []), '/operator-log', '/nowhere',
  ]
  const pictures = { '/jobs': 'jobs', '/jobs/new': 'newjob', ['/jobs/' + job.id]: 'job', '/usage': 'usage', '/machine': 'machine', '/schedules': 'schedules' }
  const wide = await signedIn({ bypassCSP: true }, '/jobs')
  const phone = await signedIn({ viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true }, '/jobs')
  await wide.evaluate(axe)
  const trouble = []
  for (const v of views) {
    await Promise.all([wide, phone].map(async (page) => {
      await page.evaluate((v) => (history.pushState(null, '', v), dispatchEvent(new PopStateEvent('popstate'))), v)
      await page.getByRole('heading', { level: 1 }).first().waitFor()
      await until('nothing is loading on ' + v, async () => (await page.getByText('Loading…').count()) === 0)
    }))
    want((await wide.locator('main .box.bad').count()) === 0, `${v} shows an error: ${await wide.locator('main .box.bad').allTextContents()}`)
    await fits(phone, v)
    if (pictures[v]) await Promise.all([picture(phone, pictures[v] + '-phone'), picture(wide, pictures[v] + '-wide')])
    const colours = Object.keys(pictures).slice(0, 3).includes(v)
    trouble.push(...(await faults(wide, colours)).map((f) => v + ': ' + f))
    if (!colours) continue
    await wide.emulateMedia({ colorScheme: 'dark' })
    trouble.push(...(await faults(wide, true)).map((f) => `${v}, dark: ${f}`))
    await picture(wide, pictures[v] + '-dark')
    await wide.emulateMedia({ colorScheme: 'light' })
  }
  await wide.getByRole('button', { name: 'Sign out' }).click()
  await wide.getByLabel('Key').waitFor()
  trouble.push(...(await faults(wide, true)).map((f) => 'signing in: ' + f))
  await phone.getByRole('button', { name: 'Menu' }).click()
  await phone.getByRole('link', { name: 'Usage and limits' }).click()
  await phone.getByRole('heading', { name: 'Usage and limits' }).waitFor()
  want((await phone.getByRole('button', { name: 'Menu' }).getAttribute('aria-expanded')) === 'false', 'the menu stays open')
  want(trouble.length === 0, trouble.join('\n'))
  want(phone.complaints.length === 0, phone.complaints.join('; '))
  await phone.context().close()
  return wide
}
