// Server-sent events by fetch, because EventSource cannot send a key. Goes on
// exactly behind the last event it had, with growing pauses between attempts.
import { jitter } from './connection'
import { Problem, send } from './api'

export interface Watcher {
  event(name: string, data: unknown): void
  state(open: boolean): void
  failed(p: Problem): void // will not be tried again
}

const silence = 45_000 // the server sends a comment every 15 s
const longest = 30_000

/** Follows a stream until the server ends it or the returned function is called. */
export function follow(path: string, last: string, w: Watcher): () => void {
  const stop = new AbortController()
  void run(path, last, w, stop.signal)
  return () => stop.abort()
}

async function run(path: string, last: string, w: Watcher, signal: AbortSignal) {
  for (let pause = 500; !signal.aborted; pause = Math.min(pause * 2, longest)) {
    const once = new AbortController()
    const stopped = () => once.abort()
    signal.addEventListener('abort', stopped)
    let watchdog = 0
    const alive = () => {
      clearTimeout(watchdog)
      watchdog = window.setTimeout(stopped, silence)
    }
    try {
      alive()
      const r = await send('GET', path, undefined, {
        signal: once.signal,
        headers: { Accept: 'text/event-stream', ...(last ? { 'Last-Event-ID': last } : {}) },
      })
      if (r.status === 204 || !r.body) return // there is nothing more to come
      w.state(true)
      for await (const e of events(r.body, alive)) {
        if (signal.aborted) return
        pause = 250
        if (e.id) last = e.id
        w.event(e.name, e.data)
        if (e.name === 'end') return
      }
    } catch (e) {
      if (signal.aborted) return
      if (e instanceof Problem && e.status >= 400 && e.status < 500 && e.status !== 429) return w.failed(e)
    } finally {
      clearTimeout(watchdog)
      signal.removeEventListener('abort', stopped)
      once.abort()
    }
    w.state(false)
    await new Promise<void>((go) => {
      const timer = setTimeout(go, jitter(pause))
      signal.addEventListener('abort', () => (clearTimeout(timer), go()), { once: true })
    })
  }
}

interface Event { name: string; id: string; data: unknown }

async function* events(body: ReadableStream<Uint8Array>, alive: () => void): AsyncGenerator<Event> {
  const reader = body.getReader()
  const text = new TextDecoder()
  let rest = ''
  let name = '', id = '', data: string[] = []
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    alive()
    const lines = (rest + text.decode(value, { stream: true })).split(/\r?\n/)
    rest = lines.pop()!
    for (const line of lines) {
      if (line === '') {
        if (data.length) yield { name: name || 'message', id, data: parse(data.join('\n')) }
        name = id = ''
        data = []
        continue
      }
      const colon = line.indexOf(':')
      const field = colon < 0 ? line : line.slice(0, colon)
      const v = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
      if (field === 'event') name = v
      else if (field === 'id') id = v
      else if (field === 'data') data.push(v)
    }
  }
}

function parse(s: string): unknown {
  try {
    return JSON.parse(s)
  } catch {
    return { message: s }
  }
}
