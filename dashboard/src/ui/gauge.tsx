// Bars. Drawn as SVG, because the content policy allows no style attributes.
import { bytes, count } from '../lib/text'
import type { Layer, Maybe } from '../types'

interface BarProps {
  value: number
  max: number
  extra?: number // stacked on top of value, paler: what is set aside
  marks?: number[] // shares of max where somebody is warned
  tone?: 'ok' | 'warn' | 'bad'
}

export function Bar({ value, max, extra = 0, marks = [], tone }: BarProps) {
  const share = (n: number) => (max > 0 ? Math.max(0, Math.min(1, n / max)) * 100 : 0)
  const own = tone ?? (share(value + extra) >= 95 && marks.length ? 'bad' : share(value + extra) >= 80 && marks.length ? 'warn' : 'ok')
  return (
    <svg class={'bar ' + own} viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
      <rect class="ground" width="100" height="4" />
      {extra > 0 && <rect class="extra" width={share(value + extra)} height="4" />}
      <rect class="fill" width={share(value)} height="4" />
      {marks.map((m) => <rect key={m} class="tick" x={m * 100 - 0.2} width="0.4" height="4" />)}
    </svg>
  )
}

/** One concurrency layer: its name, what is used, what there is. */
export function Gauge({ name, used, limit }: Layer) {
  // Hosts that wait are a share of all hosts, not a room that is full.
  const tight = !!limit && (used ?? 0) >= limit && !name.startsWith('hosts ')
  const figure = name.startsWith('bytes') ? bytes : count
  return (
    <li class="gauge">
      <span class="name">{name}</span>
      <span class="num">{figure(used)}<span class="muted"> / {limit ? figure(limit) : 'no limit'}</span>{tight && <strong class="tight"> full</strong>}</span>
      <Bar value={used ?? 0} max={limit ?? 0} tone={tight ? 'warn' : 'ok'} />
    </li>
  )
}

export const Gauges = ({ layers }: { layers: Maybe<Layer[]> }) => <ul class="gauges">{(layers ?? []).map((l) => <Gauge key={l.name} {...l} />)}</ul>
