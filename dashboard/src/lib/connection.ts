// Is anybody there? A request that gets no answer at all means the server or
// the network is gone: everybody stops asking, one probe goes on with growing
// pauses, and when it is answered everybody asks again.
import { store } from './store'

export interface Connection {
  lost: boolean
  retryAt: number // when the next probe starts, by the local clock
  epoch: number // grows each time the connection is found again
}

export const connection = store<Connection>({ lost: false, retryAt: 0, epoch: 0 })

const first = 1000
const longest = 30_000

let pause = first
let timer = 0

/** Jittered, so that a hundred open tabs do not return in step. */
export const jitter = (ms: number) => ms * (0.75 + Math.random() / 2)

export function lost() {
  if (connection.get().lost) return
  pause = first
  plan()
}

function plan() {
  const wait = jitter(pause)
  pause = Math.min(pause * 2, longest)
  connection.set({ ...connection.get(), lost: true, retryAt: Date.now() + wait })
  clearTimeout(timer)
  timer = window.setTimeout(probe, wait)
}

export async function probe() {
  clearTimeout(timer)
  try {
    const r = await fetch('/v1/health', { cache: 'no-store', signal: AbortSignal.timeout(5000) })
    if (r.status < 500) {
      connection.set({ lost: false, retryAt: 0, epoch: connection.get().epoch + 1 })
      return
    }
  } catch {
    // still nobody
  }
  plan()
}
