import { api, signedIn, until, want, world } from './world.mjs'

const done = (s) => ['completed', 'partial', 'failed', 'cancelled'].includes(s)

/** What the dashboard shows of a text: invisible characters spelled out. */
const shown = (s) => s.replace(/[\u0000\u202d\u202e]/g, '')

export async function scripts() {
  const job = await api('POST', '/v1/jobs', { url: world.seeds.evil, scope: 'host', delay_ms: 0, per_host: 10, seeding: 'none', pages: 400, label: world.payloads[1] })
  await until('the crawl of scripts ends', async () => done((await api('GET', '/v1/jobs/' + job.id)).status), 40_000)

  const page = await signedIn({}, '/jobs')
  const alarms = []
  page.on('dialog', (d) => (alarms.push('dialog: ' + d.message()), d.dismiss()))
  await page.addInitScript(() => addEventListener('securitypolicyviolation', (e) => (window.__broken ??= []).push(e.violatedDirective + ' ' + e.blockedURI)))
  const look = async (where) => {
    const found = await page.evaluate(() => ({ ran: window.__xss ?? 0, broken: window.__broken ?? [], bad: [...document.querySelectorAll('a[href]')].filter((a) => !/^https?:$/.test(a.protocol)).map((a) => a.href), injected: document.querySelectorAll('main script, main iframe, main img, main marquee, main video, main math, main style').length }))
    want(found.ran === 0, `${where}: ${found.ran} scripts ran`)
    want(found.broken.length === 0, `${where}: the content policy had to stop ${found.broken}`)
    want(found.bad.length === 0, `${where}: links lead to ${found.bad}`)
    want(found.injected === 0, `${where}: ${found.injected} elements came from strangers' text`)
  }
  const base = '/jobs/' + job.id
  const open = async (path, seen) => {
    await page.goto(world.base + path)
    await page.getByText(seen).first().waitFor()
    await look(path)
  }
  await open('/jobs', '<img src=x onerror=')
  await open(base, 'Latest pages')
  await open(base + '/events', 'running')
  await open(base + '/broken', 'not found')

  // Every title of the sixty is on the list of pages, letter by letter.
  await open(base + '/pages?outcome=ok', 'A fine page')
  while (await page.getByRole('button', { name: 'Load more' }).count()) {
    const n = await page.locator('tbody tr').count()
    await page.getByRole('button', { name: 'Load more' }).click()
    await until('more rows', async () => (await page.locator('tbody tr').count()) > n)
  }
  await look('pages')
  const titles = new Set((await page.locator('.ptitle').allTextContents()).map((s) => s.replace(/\\u[0-9a-f]{4}/g, '').trim()))
  const missing = world.payloads.map(shown).filter((p) => !titles.has(p.trim()) && !titles.has(p.replace(/\ufffd/g, '').trim()))
  want(world.payloads.length === 60, 'there are to be sixty payloads')
  want(missing.length === 0, `${missing.length} titles are not shown as they were written, such as ${missing[0]}; shown are such as ${[...titles].slice(-3)}`)

  for (const q of ['u/', 'r/', 'gone/']) await open(base + '/pages?q=' + encodeURIComponent(q), 'evil.test')
  // Addresses that are payloads themselves, typed into the explain box.
  for (const p of [world.payloads[0], world.payloads[11], world.seeds.evil + 'gone/' + encodeURIComponent(world.payloads[2])]) {
    await page.goto(world.base + base + '/explain?url=' + encodeURIComponent(p))
    await page.locator('.explain, .box.bad').first().waitFor()
    await look('explain ' + p)
  }
  await open('/jobs?q=' + encodeURIComponent(world.payloads[0]), 'No job fits')
  want(alarms.length === 0, alarms.join(', '))
  return page
}
