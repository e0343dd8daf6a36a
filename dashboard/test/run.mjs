// A visit to the dashboard in chapters. Started by the Go test in
// internal/dashboard, which says over standard input where everything is, and
// reads one line a chapter.
import { browser } from './world.mjs'
import { signIn, wrongKey, readOnly } from './signin.mjs'
import { startJob, hostThrottled, evidence, explain, oldFigures, controls } from './job.mjs'
import { schedules } from './schedules.mjs'
import { scripts } from './scripts.mjs'
import { keyboard } from './keyboard.mjs'
import { everyView } from './views.mjs'
import { lostConnection } from './lost.mjs'
import { alone, elsewhere, oneCrawl, workers } from './workers.mjs'

const chapters = [
  ['a wrong key is refused with a reason', wrongKey],
  ['a key signs in and leaves the address bar', signIn],
  ['a job is started through the form that says its limits first', startJob],
  ['a throttled host shows its reason and counts down', hostThrottled],
  ['a page opens its evidence', evidence],
  ['a waiting URL says what it waits for', explain],
  ['figures that nobody brings any more say how old they are', oldFigures],
  ['a key that can only read is offered nothing else', readOnly],
  ['sixty scripts in titles, URLs and errors stay text', scripts],
  ['a schedule is set, disabled and deleted', schedules],
  ['the keyboard alone signs in and starts a job', keyboard],
  ['every view fits a phone and has accessible names', everyView],
  ['a lost connection says so and comes back', lostConnection],
  ['a job is paused, resumed, cancelled and deleted', controls],
  ['a server alone is its only worker', alone],
  ['a server that does not drive a job shows it live and stops it', elsewhere],
  ['every worker of a fleet is seen, falls silent and leaves', workers],
  ['the dashboard of one crawl offers no orders', oneCrawl],
]

let failed = false
for (const [chapter, tell] of chapters) {
  const began = Date.now()
  let error = ''
  try {
    const page = await tell()
    if (page?.complaints.length) error = 'the page complained: ' + page.complaints.join('; ')
    await page?.context().close()
  } catch (e) {
    error = String(e.stack ?? e)
  }
  failed ||= error !== ''
  console.log('CHAPTER ' + JSON.stringify({ chapter, error, ms: Date.now() - began }))
}
await browser.close()
process.exit(failed ? 1 : 0)
