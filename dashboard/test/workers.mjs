import { axe, faults } from './views.mjs'
import { api, fits, picture, signedIn, until, visitor, want, world } from './world.mjs'

const cell = async (row, head) => (await row.locator(`td[data-head="${head}"]`).innerText()).trim()

export async function alone() {
  const page = await signedIn({}, '/jobs')
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Workers' }).click()
  await page.getByRole('heading', { level: 1, name: 'Workers' }).waitFor()
  await page.getByText('This server works alone.').waitFor()
  const rows = page.locator('tbody tr')
  want((await rows.count()) === 1, `${await rows.count()} workers`)
  await rows.getByText('this server').waitFor()
  want((await cell(rows, 'Last heard')) === 'just now', 'a server does not hear itself: ' + (await cell(rows, 'Last heard')))
  return page
}

const tile = async (page, name) => (await page.locator('dl.tiles div', { has: page.locator('dt', { hasText: name }) }).first().locator('dd').innerText()).trim()

export async function elsewhere() {
  const { fleet } = world
  const other = { base: fleet.other, key: fleet.key }
  const job = await api('POST', '/v1/jobs', { urls: fleet.seeds, profile: 'polite', scope: 'host', seeding: 'none', delay_ms: 1000 }, fleet)
  const page = await signedIn({}, '/jobs', other)
  await page.getByText(/ pages · [\d.]+\/s/).waitFor() // the list of jobs says how fast it is
  await page.goto(`${other.base}/jobs/${job.id}`)
  await page.getByRole('heading', { name: 'Concurrency layers' }).waitFor()
  const before = Number(await tile(page, 'Pages'))
  await until('pages are counted as they come', async () => Number(await tile(page, 'Pages')) > before + 10)
  await page.locator('.latest li').nth(5).waitFor()
  await picture(page, 'job-elsewhere')
  await page.getByRole('link', { name: 'Hosts', exact: true }).click()
  await until('hosts of two workers are named', async () => new Set(await page.locator('.holder').allInnerTexts()).size > 1)
  await picture(page, 'hosts-elsewhere')
  await page.getByRole('link', { name: 'Machine' }).click()
  await until('the machine is the fleet', async () => (await tile(page, 'Processes')) === '3' && Number(await tile(page, 'Pages/s')) > 5)
  await picture(page, 'machine-fleet')
  await page.goto(`${other.base}/jobs/${job.id}`)
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.getByText('The job is paused.').first().waitFor()
  await page.getByRole('button', { name: 'Resume' }).waitFor()
  want((await api('GET', '/v1/jobs/' + job.id, undefined, fleet)).status === 'paused', 'the server that drives the job does not know that it is paused')
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('button', { name: 'Cancel the job' }).click()
  await page.getByRole('button', { name: 'Delete' }).waitFor()
  return page
}

export async function workers() {
  const { fleet } = world
  const job = await api('POST', '/v1/jobs', { urls: fleet.seeds, profile: 'polite', scope: 'host', seeding: 'none', delay_ms: 1000 }, fleet)
  const page = await signedIn({ bypassCSP: true }, '/workers', fleet)
  const rows = page.locator('tbody tr')
  const row = (pid) => page.locator('tbody tr', { hasText: `-${pid}-` })
  const state = async (pid) => ((await row(pid).count()) ? cell(row(pid), 'State') : 'gone')
  await until('three workers hold hosts and fetch', async () => {
    if ((await rows.count()) !== 3) return false
    for (const r of await rows.all()) if (!(Number(await cell(r, 'Hosts')) > 0 && Number(await cell(r, 'Pages/s')) > 0)) return false
    return true
  }, 30_000)
  for (const r of await rows.all()) want(/^just now$|^\d s ago$/.test(await cell(r, 'Last heard')), 'last heard ' + (await cell(r, 'Last heard')))
  want((await page.getByText('this server').count()) === 1, 'nobody, or more than one, is this server')
  await picture(page, 'workers-wide')
  await page.evaluate(axe)
  const found = await faults(page, true)
  await page.emulateMedia({ colorScheme: 'dark' })
  found.push(...(await faults(page, true)))
  want(found.length === 0, found.join('\n'))
  const phone = await signedIn({ viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true }, '/workers', fleet)
  await phone.locator('tbody tr').nth(2).waitFor()
  await fits(phone, '/workers')
  await picture(phone, 'workers-phone')

  // Which worker has which host.
  await phone.goto(`${fleet.base}/jobs/${job.id}/hosts`)
  const holders = () => phone.locator('.holder').allInnerTexts()
  await until('hosts of two workers are named', async () => new Set(await holders()).size > 1)
  await fits(phone, 'hosts of a fleet')
  await picture(phone, 'hosts-fleet-phone')
  await phone.setViewportSize({ width: 1280, height: 800 })
  await picture(phone, 'hosts-fleet-wide')
  await phone.context().close()

  const [frozen, killed] = fleet.workers
  process.kill(frozen, 'SIGSTOP')
  try {
    await until('a frozen worker is silent', async () => (await state(frozen)) === 'silent')
    await picture(page, 'workers-silent-dark')
  } finally {
    process.kill(frozen, 'SIGCONT')
  }
  await until('it is back', async () => (await state(frozen)) === 'live', 30_000)
  process.kill(killed, 'SIGKILL')
  await until('a killed worker leaves the list', async () => (await state(killed)) === 'gone')
  want((await rows.count()) === 2, 'somebody else left too')
  process.kill(fleet.redis, 'SIGSTOP')
  try {
    const why = page.locator('main .box', { hasText: 'the fleet\'s store' })
    await why.getByText('The other workers are shown as they were').waitFor({ timeout: 30_000 })
    want((await rows.count()) === 2, 'without Redis the list is gone')
    await picture(page, 'workers-without-redis-dark')
    await page.setViewportSize({ width: 360, height: 740 })
    await fits(page, '/workers without Redis')
    await picture(page, 'workers-without-redis-phone')
  } finally {
    process.kill(fleet.redis, 'SIGCONT')
  }
  await until('Redis is back', async () => (await page.locator('main .box').count()) === 0, 30_000)
  await api('POST', `/v1/jobs/${job.id}/cancel`, undefined, fleet)
  return page
}

export async function oneCrawl() {
  const page = await visitor()
  await page.goto(world.crawl)
  await page.getByRole('heading', { level: 1, name: 'Jobs' }).waitFor()
  await page.locator('tbody tr').first().waitFor()
  want((await page.getByRole('link', { name: 'New job' }).count()) === 0, 'a new job is offered, and would be refused')
  await page.getByLabel('Type').selectOption('Single pages')
  await page.getByText('No job fits these filters.').waitFor()
  await page.getByLabel('Type').selectOption('Command')
  await page.locator('tbody tr').first().waitFor()
  await page.locator('tbody tr a.name').first().click()
  await page.getByRole('button', { name: 'Cancel' }).waitFor()
  want((await page.getByRole('button', { name: 'Pause' }).count()) === 0, 'a pause is offered, and would be refused')
  await page.getByRole('link', { name: 'Schedules' }).click()
  await page.getByText('No schedules.').waitFor()
  want((await page.getByRole('link', { name: /New schedule|Set one/ }).count()) === 0, 'a schedule is offered, and would be refused')
  return page
}
