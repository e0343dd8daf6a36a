// What every chapter needs: a browser, somebody who is signed in, patience.
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { chromium } from 'playwright-core'

/** What the Go test says: addresses, the key, where pictures go. */
export const world = JSON.parse(readFileSync(0, 'utf8'))

export const browser = await chromium.launch({
  executablePath: world.chromium,
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
})

const limit = 15_000

/** Somebody in front of a browser of their own. Whatever the page complains about is kept. */
export async function visitor(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: 'light', reducedMotion: 'reduce', ...options })
  const page = await context.newPage()
  page.setDefaultTimeout(limit)
  page.complaints = []
  page.on('pageerror', (e) => page.complaints.push('error: ' + e.message))
  page.on('console', (m) => m.type() === 'error' && !/status of 4\d\d|ERR_INTERNET_DISCONNECTED/.test(m.text()) && page.complaints.push('console: ' + m.text()))
  return page
}

export async function signedIn(options, at = '/jobs', server = world) {
  const page = await visitor(options)
  await page.goto(server.base + at + '#key=' + server.key)
  await page.getByRole('heading', { level: 1 }).waitFor()
  return page
}

/** Asks the API beside the browser. */
export async function api(method, url, body, server = world) {
  const r = await fetch(server.base + url, {
    method,
    headers: { Authorization: 'Bearer ' + server.key, ...(body && { 'Content-Type': 'application/json' }) },
    body: body && JSON.stringify(body),
  })
  const text = await r.text()
  if (!r.ok) throw new Error(`${method} ${url}: ${r.status} ${text}`)
  return text ? JSON.parse(text) : undefined
}

/** Waits until f returns something true. */
export async function until(what, f, ms = limit) {
  const end = Date.now() + ms
  for (;;) {
    const v = await f()
    if (v) return v
    if (Date.now() > end) throw new Error('waited in vain: ' + what)
    await new Promise((go) => setTimeout(go, 60))
  }
}

export function want(ok, what) {
  if (!ok) throw new Error(what)
}

export const picture = (page, name) => page.screenshot({ path: path.join(world.artifacts, name + '.png'), fullPage: true })

/** Nothing may stick out to the right. */
export async function fits(page, where) {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
  want(over <= 0, `${where} is ${over} pixels too wide`)
}
