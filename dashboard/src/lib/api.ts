// One door to the API: adds the key, reads RFC 9457 problems, notices when the
// key is refused and when nobody answers.
import { lost } from './connection'
import { key, signOut } from './session'
import { skewFrom } from './time'

export class Problem extends Error {
  constructor(
    readonly status: number, // 0: no answer
    readonly title: string,
    readonly detail: string,
    readonly fields: Record<string, string> = {},
  ) {
    super(detail || title)
  }
}

export const noAnswer = () =>
  new Problem(0, 'No answer', 'tiptoe does not answer. Is it still running, and is the network up? It is asked again by itself.')

export type Query = Record<string, string | number | boolean | null | undefined>

export function withQuery(path: string, query: Query): string {
  const p = new URLSearchParams()
  for (const [k, v] of Object.entries(query)) if (v !== undefined && v !== null && v !== '') p.set(k, String(v))
  const s = p.toString()
  return s ? path + (path.includes('?') ? '&' : '?') + s : path
}

interface Options {
  signal?: AbortSignal
  headers?: Record<string, string>
  key?: string // instead of the session's
}

/** Sends one request and returns the answer if it is a good one. */
export async function send(method: string, path: string, body?: unknown, o: Options = {}): Promise<Response> {
  const used = o.key ?? key.get()
  const headers: Record<string, string> = { Authorization: 'Bearer ' + used, ...o.headers }
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  let r: Response
  try {
    r = await fetch(path, {
      method, headers, signal: o.signal, cache: 'no-store', credentials: 'omit',
      body: body === undefined ? undefined : JSON.stringify(body),
    })
  } catch (e) {
    if (o.signal?.aborted) throw e
    lost()
    throw noAnswer()
  }
  skewFrom(r.headers.get('Date'))
  if (r.ok) return r
  const p = await problem(r)
  if (r.status === 401 && o.key === undefined && key.get() === used) signOut('The key is no longer accepted: ' + p.detail)
  throw p
}

async function problem(r: Response): Promise<Problem> {
  try {
    const b = await r.json()
    const fields: Record<string, string> = {}
    for (const e of b.errors ?? []) if (e.location) fields[String(e.location).replace(/^body\.?/, '').replace(/\[\d+\].*/, '')] ??= String(e.message)
    return new Problem(r.status, String(b.title ?? r.statusText), String(b.detail ?? ''), fields)
  } catch {
    return new Problem(r.status, r.statusText || 'Error ' + r.status, 'The server answered with HTTP ' + r.status + ' and no explanation; its log has more.')
  }
}

export async function call<T>(method: string, path: string, body?: unknown, o?: Options): Promise<T> {
  const r = await send(method, path, body, o)
  return r.status === 204 ? (undefined as T) : ((await r.json()) as T)
}

export const get = <T>(path: string, o?: Options) => call<T>('GET', path, undefined, o)

/** Fetches with the key and hands the bytes to the browser as a download. */
export async function download(path: string, name: string) {
  const r = await send('GET', path)
  const said = /filename="?([\w.-]+)"?/.exec(r.headers.get('Content-Disposition') ?? '')
  const url = URL.createObjectURL(await r.blob())
  const a = document.createElement('a')
  a.href = url
  a.download = said?.[1] ?? name
  a.click()
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
