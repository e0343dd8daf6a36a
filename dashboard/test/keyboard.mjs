import { until, visitor, want, world } from './world.mjs'

/** Tabs on until what has the focus fits; every stop on the way must be visible. */
async function tabTo(page, fits) {
  for (let i = 0; i < 60; i++) {
    await page.keyboard.press('Tab')
    const f = await page.evaluate(() => {
      const e = document.activeElement
      const s = getComputedStyle(e)
      return { tag: e.tagName, name: e.getAttribute('aria-label') ?? e.labels?.[0]?.textContent ?? e.textContent.trim(), ring: s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0 }
    })
    want(f.ring || f.tag === 'BODY', `the focus on ${f.tag} “${f.name}” cannot be seen`)
    if (fits(f)) return
  }
  throw new Error('Tab never came to ' + fits)
}

export async function keyboard() {
  const page = await visitor()
  await page.goto(world.base + '/')
  await until('the key field has the focus', () => page.evaluate(() => document.activeElement.tagName === 'INPUT'))
  await page.keyboard.insertText(world.key)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Jobs' }).waitFor()
  await tabTo(page, (f) => f.tag === 'A' && f.name === 'New job')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'New job' }).waitFor()
  await tabTo(page, (f) => f.name === 'Where to begin')
  await page.keyboard.insertText(world.seeds.shop)
  await tabTo(page, (f) => f.name === 'Pages at most')
  await page.keyboard.insertText('3')
  await tabTo(page, (f) => f.tag === 'BUTTON' && f.name === 'Start the job')
  await page.keyboard.press('Enter')
  await page.getByRole('navigation', { name: 'This job' }).waitFor()
  await page.getByRole('heading', { level: 1, name: world.seeds.shop }).waitFor()
  return page
}
