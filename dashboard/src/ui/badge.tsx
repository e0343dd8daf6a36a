// A state as a shape and a word; the colour only repeats them.
import { words } from '../lib/text'

type Tone = 'ok' | 'info' | 'warn' | 'bad' | 'still'
type Shape = keyof typeof shapes

const shapes = {
  ring: <circle cx="6" cy="6" r="4" fill="none" stroke="currentColor" stroke-width="1.8" />,
  play: <path d="M3.5 2v8l6.5-4z" fill="currentColor" />,
  bars: <path d="M2.8 2h2.4v8H2.8zM6.8 2h2.4v8H6.8z" fill="currentColor" />,
  check: <path d="M2 6.4 5 9.2 10 3" fill="none" stroke="currentColor" stroke-width="1.9" />,
  half: <><circle cx="6" cy="6" r="4" fill="none" stroke="currentColor" stroke-width="1.6" /><path d="M6 2a4 4 0 0 0 0 8z" fill="currentColor" /></>,
  cross: <path d="m2.6 2.6 6.8 6.8m0-6.8-6.8 6.8" fill="none" stroke="currentColor" stroke-width="1.9" />,
  slash: <><circle cx="6" cy="6" r="4" fill="none" stroke="currentColor" stroke-width="1.6" /><path d="m3.2 8.8 5.6-5.6" stroke="currentColor" stroke-width="1.6" /></>,
  clock: <><circle cx="6" cy="6" r="4.2" fill="none" stroke="currentColor" stroke-width="1.5" /><path d="M6 3.4V6l1.8 1.2" fill="none" stroke="currentColor" stroke-width="1.4" /></>,
  arrow: <path d="M1.5 6h8M6.5 2.8 9.8 6 6.5 9.2" fill="none" stroke="currentColor" stroke-width="1.7" />,
  dot: <circle cx="6" cy="6" r="3" fill="currentColor" />,
}

const looks: Record<string, [Tone, Shape]> = {
  // jobs
  queued: ['still', 'ring'], running: ['info', 'play'], paused: ['warn', 'bars'], completed: ['ok', 'check'],
  partial: ['warn', 'half'], failed: ['bad', 'cross'], cancelled: ['still', 'slash'],
  // hosts
  ready: ['ok', 'dot'], waiting: ['warn', 'clock'], parked: ['bad', 'bars'], idle: ['still', 'ring'],
  // URLs
  ok: ['ok', 'check'], redirect: ['info', 'arrow'], not_modified: ['ok', 'check'], throttled: ['warn', 'clock'],
  robots: ['still', 'slash'], scope: ['still', 'slash'], trap: ['still', 'slash'], budget: ['still', 'slash'],
  // fates
  ended: ['ok', 'check'], refused: ['still', 'slash'], in_hand: ['info', 'play'], unknown: ['still', 'ring'],
  // everything else of the closed list is something that went wrong
}

export function Badge({ of, label }: { of: string; label?: string }) {
  const [tone, shape] = looks[of] ?? ['bad', 'cross']
  return (
    <span class={'badge ' + tone}>
      <svg viewBox="0 0 12 12" aria-hidden="true">{shapes[shape]}</svg>
      {label ?? words(of)}
    </span>
  )
}
