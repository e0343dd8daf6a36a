import { api, signedIn, until, visitor, want, world } from './world.mjs'

export async function wrongKey() {
  const page = await visitor()
  await page.goto(world.base + '/schedules')
  await page.getByLabel('Key').fill('tt_aaaaaaaaaaaa_' + 'A'.repeat(43))
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('This key is not accepted').first().waitFor()
  want((await page.getByLabel('Key').getAttribute('aria-invalid')) === 'true', 'the field is not marked as wrong')
  want(await page.evaluate(() => sessionStorage.length === 0), 'a wrong key was kept')
  await page.getByLabel('Key').fill(world.key)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Schedules' }).waitFor() // where one wanted to go
  return page
}

export async function signIn() {
  const page = await signedIn({}, '/jobs')
  want(new URL(page.url()).hash === '', 'the key is still in the address bar: ' + page.url())
  await page.reload()
  await page.getByRole('heading', { name: 'Jobs' }).waitFor()
  want(await page.evaluate((k) => !document.cookie.includes(k) && !JSON.stringify(localStorage).includes(k), world.key), 'the key was kept where it outlives the tab')
  await page.getByRole('group', { name: 'Colours' }).getByRole('button', { name: 'Dark' }).click()
  want((await page.evaluate(() => getComputedStyle(document.body).colorScheme)) === 'dark', 'dark is not dark')
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByLabel('Key').waitFor()
  want(await page.evaluate(() => sessionStorage.length === 0), 'the key outlived signing out')
  return page
}

export async function readOnly() {
  const made = await api('POST', '/v1/keys', { name: 'a reader', scopes: ['read'] })
  const page = await visitor()
  await page.goto(world.base + '/jobs#key=' + made.key)
  await page.getByRole('link', { name: world.seeds.busy }).first().click()
  await page.getByRole('button', { name: 'Export as csv' }).waitFor()
  for (const name of ['Pause', 'Cancel', 'Delete']) want((await page.getByRole('button', { name, exact: true }).count()) === 0, `a reader is offered “${name}”`)
  for (const name of ['New job', 'Workers']) want((await page.getByRole('link', { name }).count()) === 0, `a reader is offered “${name}”`)
  await api('DELETE', '/v1/keys/' + made.id)
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Machine' }).click()
  await until('the revoked key signs out', () => page.getByText('no longer accepted').count())
  return page
}
