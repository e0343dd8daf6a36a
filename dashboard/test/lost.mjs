import { signedIn, until, want } from './world.mjs'

export async function lostConnection() {
  const page = await signedIn({}, '/machine')
  await page.getByRole('heading', { name: 'Concurrency layers' }).waitFor()
  await page.context().setOffline(true)
  await page.getByText('No connection to tiptoe.').waitFor()
  want(await page.getByRole('heading', { name: 'Concurrency layers' }).count(), 'what was known is gone')
  await page.context().setOffline(false)
  await page.getByRole('button', { name: 'Try now' }).click()
  await until('the banner goes', async () => (await page.getByText('No connection to tiptoe.').count()) === 0)
  return page
}
