import { signedIn, until, world } from './world.mjs'

export async function schedules() {
  const page = await signedIn({}, '/schedules')
  await page.getByText('No schedules.').waitFor()
  await page.getByRole('link', { name: 'New schedule' }).click()
  await page.getByLabel('Where to begin').fill(world.seeds.blog)
  await page.getByLabel('Repeat').selectOption('cron')
  await page.getByLabel('Cron rule').fill('every tuesday')
  await page.getByRole('button', { name: 'Set the schedule' }).click()
  await until('a bad rule is said at its field', async () => (await page.getByLabel('Cron rule').getAttribute('aria-invalid')) === 'true')
  await page.getByLabel('Cron rule').fill('0 3 * * 2')
  await page.getByRole('button', { name: 'Set the schedule' }).click()
  const row = page.getByRole('row', { name: /blog\.demo\.test/ })
  await row.getByText('0 3 * * 2').waitFor()
  await row.getByRole('button', { name: /^Disable/ }).click()
  await row.getByText('off', { exact: true }).waitFor()
  await row.getByRole('button', { name: /^Enable/ }).click()
  await row.getByText('on', { exact: true }).waitFor()
  await row.getByRole('button', { name: /^Delete/ }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete the schedule' }).click()
  await page.getByText('No schedules.').waitFor()
  return page
}
