import { readFileSync } from 'node:fs'
import { api, picture, signedIn, until, visitor, want, world } from './world.mjs'

let at = '' // the job that was started, as an address of the dashboard

const tab = (page, name) => page.getByRole('navigation', { name: 'This job' }).getByRole('link', { name }).click()

export async function startJob() {
  const page = await signedIn({}, '/jobs')
  await page.getByText('No jobs yet.').waitFor()
  await page.getByRole('main').getByRole('link', { name: 'New job' }).click()
  const panel = page.getByRole('complementary', { name: 'What this job would get' })
  await panel.getByText('Enter an address').waitFor()
  await page.getByRole('button', { name: 'Start the job' }).click()
  await page.getByText('Enter at least one address, such as').waitFor()

  await page.getByLabel('Where to begin').fill(['busy', 'museum', 'attic'].map((s) => world.seeds[s]).join('\n'))
  await page.getByLabel('Scope').selectOption('host')
  await page.getByLabel('Profile').selectOption('polite')
  await page.getByLabel('Pages at most').fill('0')
  await until('a wrong number is said at its field', async () => (await page.getByLabel('Pages at most').getAttribute('aria-invalid')) === 'true')
  await page.getByLabel('Pages at most').fill('5000')
  await panel.getByText('Safety limit: Maximum 400 pages per crawl (requested: 5000)').waitFor()
  await panel.getByText('It would start at once.').waitFor()
  await picture(page, 'newjob-light')
  await page.getByRole('button', { name: 'Start the job' }).click()
  await page.getByRole('navigation', { name: 'This job' }).waitFor()
  at = new URL(page.url()).pathname
  const pages = page.locator('.tiles div', { hasText: 'Pages' }).locator('dd')
  await until('pages are counted', async () => Number(await pages.textContent()) >= 3)
  const before = Number(await pages.textContent())
  await until('the figure grows by itself', async () => Number(await pages.textContent()) > before)
  await page.getByRole('img', { name: /^Throughput: now/ }).waitFor()
  await page.getByRole('img', { name: /^Answers by class: 2xx/ }).waitFor()
  for (const layer of ['workers', 'frontier in memory', 'ready hosts', 'parsers', 'robots fetches']) await page.locator('.gauge', { hasText: layer }).waitFor()
  return page
}

export async function hostThrottled() {
  const page = await signedIn({}, at + '/hosts')
  const row = page.getByRole('row', { name: /busy0\.farm\.test/ })
  await until('the host is throttled and says why', async () => /retry-after/i.test((await row.count()) ? await row.innerText() : ''), 30_000)
  await until('it counts down to its wake-up', async () => /\bin \d/.test(await row.innerText()))
  await page.getByText(/hosts? waits? for the end of a pause/).waitFor()
  await picture(page, 'hosts-light')
  await tab(page, 'Overview')
  await page.getByRole('img', { name: /^429 answers: \d+ times? asked to slow down/ }).waitFor()
  await picture(page, 'job-light')
  return page
}

export async function evidence() {
  const page = await signedIn({}, at + '/pages')
  await page.getByLabel('Outcome').selectOption('robots')
  const link = page.getByRole('table').getByRole('link', { name: /museum\.demo\.test/ }).first()
  await link.waitFor()
  await picture(page, 'pages-light')
  await link.click()
  await page.getByText(/disallowed by line \d+/).waitFor()
  await page.getByRole('table', { name: 'Evidence about this URL' }).getByText('blocked by robots').waitFor()
  await picture(page, 'evidence-light')
  await tab(page, 'Broken links')
  const broken = page.getByRole('row', { name: /lost-album/ })
  await broken.getByRole('link', { name: world.seeds.attic + 'photographs', exact: true }).waitFor() // where it is linked from
  await picture(page, 'broken-light')
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Export as csv' }).click()])
  want(readFileSync(await file.path(), 'utf8').includes('museum.demo.test'), 'the export lacks the museum')
  await tab(page, 'Events')
  await page.getByRole('table', { name: 'Events, newest first' }).getByText('running').waitFor()
  return page
}

export async function explain() {
  const page = await signedIn({}, at + '/explain')
  await page.getByText('Why was this page fetched, or not?').waitFor()
  const id = at.split('/').at(-1)
  const url = await until('something waits', async () => {
    for (const u of world.waiting) {
      if ((await api('GET', `/v1/jobs/${id}/explain?url=${encodeURIComponent(u)}`)).fate === 'waiting') return u
    }
  })
  await page.getByLabel('URL').fill(url)
  await page.getByRole('button', { name: 'Explain' }).click()
  await page.locator('.headline').waitFor()
  const told = await page.locator('.explain').innerText()
  want(/Waits for .*until \d\d:\d\d:\d\d \(in \d/.test(told), 'the explanation does not say what it waits for and until when: ' + told)
  await picture(page, 'explain-light')
  await page.getByLabel('URL').fill('http://elsewhere.test/')
  await page.getByLabel('URL').press('Enter')
  await page.getByText('turned away').first().waitFor()
  return page
}

export async function oldFigures() {
  const page = await visitor()
  const id = at.split('/').at(-1)
  const live = { ...(await api('GET', `/v1/jobs/${id}/live`)), at: new Date(Date.now() - 10_000).toISOString() }
  // One picture, and then nothing more, on a stream that stays open.
  await page.addInitScript((text) => {
    const real = window.fetch
    window.fetch = (url, ...rest) => !String(url?.url ?? url).endsWith('/events') ? real(url, ...rest)
      : Promise.resolve(new Response(new ReadableStream({ start: (c) => c.enqueue(new TextEncoder().encode(text)) }), { headers: { 'Content-Type': 'text/event-stream' } }))
  }, `event: live\ndata: ${JSON.stringify(live)}\n\n`)
  await page.goto(world.base + at + '#key=' + world.key)
  const age = page.getByText(/^The figures are [\d.]+ s old/)
  const first = await age.innerText()
  await until('the figures grow older', async () => (await age.innerText()) !== first, 5000)
  return page
}

export async function controls() {
  const page = await signedIn({}, at)
  const act = (name) => page.getByRole('button', { name, exact: true })
  await act('Pause').click()
  await page.locator('.title .badge', { hasText: 'paused' }).waitFor()
  await act('Resume').click()
  await page.locator('.title .badge', { hasText: /running|queued/ }).waitFor()
  await act('Cancel').click()
  const ask = page.getByRole('dialog', { name: 'Cancel this job?' })
  await ask.getByRole('button', { name: 'No, leave it' }).click()
  want((await page.locator('.title .badge', { hasText: 'cancelled' }).count()) === 0, 'No means yes')
  await act('Cancel').click()
  await ask.getByRole('button', { name: 'Cancel the job' }).click()
  await page.locator('.title .badge', { hasText: 'cancelled' }).waitFor()
  await act('Delete').click()
  await page.getByRole('dialog', { name: 'Delete this job?' }).getByRole('button', { name: 'Delete it for good' }).click()
  await page.getByRole('heading', { name: 'Jobs', exact: true }).waitFor()
  await until('it is gone from the list', async () => (await page.locator(`a[href="${at}"]`).count()) === 0)
  return page
}
