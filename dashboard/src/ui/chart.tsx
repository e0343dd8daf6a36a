// A chart over time, and the same in words for those who do not see it.
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { theme } from '../lib/theme'
import { useStore } from '../lib/store'
import { rate } from '../lib/text'

export interface Line { label: string; color: string } // color: the name of a custom property

interface Props {
  title: string
  summary: string
  lines: Line[]
  stacked?: boolean
  bars?: boolean
  data: number[][] // times in seconds, then one row a line
}

const height = 150

/** The value of a custom property as the canvas wants it. */
function colorOf(el: HTMLElement, name: string): string {
  el.style.color = `var(${name})`
  return getComputedStyle(el).color
}

const veil = (color: string, a: number) => color.replace(/^rgba?\(([^)]*)\)$/, (_, c: string) => `rgba(${c.split(/[ ,/]+/).slice(0, 3).join(',')},${a})`)

/** The clock at the ticks, with seconds where they tell two ticks apart. */
function times(_u: uPlot, ticks: number[]): string[] {
  const close = ticks.length > 1 && ticks[1]! - ticks[0]! < 60
  return ticks.map((t) => new Date(t * 1000).toLocaleTimeString('en-GB', close ? {} : { hour: '2-digit', minute: '2-digit' }))
}

function pile(data: number[][]): number[][] {
  const out = [data[0]!]
  for (let i = 1; i < data.length; i++) out.push(data[i]!.map((v, k) => v + (i > 1 ? out[i - 1]![k]! : 0)))
  return out
}

export function Chart({ title, summary, lines, stacked, bars, data }: Props) {
  const root = useRef<HTMLDivElement>(null)
  const probe = useRef<HTMLSpanElement>(null)
  const plot = useRef<uPlot>(undefined)
  const chosen = useStore(theme)
  const raw = useRef(data)
  raw.current = data
  useEffect(() => {
    const box = root.current!, ink = probe.current! // the references may be gone before the observers are
    const draw = () => {
      plot.current?.destroy()
      plot.current = make()
    }
    const make = () => {
      const text = colorOf(ink, '--muted'), grid = colorOf(ink, '--line')
      const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1, size: 4 }, font: '11px system-ui, sans-serif' }
      const shown = stacked ? pile(raw.current) : raw.current
      return new uPlot(
        {
          width: box.clientWidth, height, padding: [10, 8, 0, 0],
          cursor: { sync: { key: 'job' }, drag: { x: false, y: false }, points: { show: !bars } },
          legend: { live: true },
          scales: { y: { range: (_u, _min, max) => [0, Math.max(max * 1.1, 1)] } },
          axes: [{ ...axis, size: 28, space: 70, values: times }, { ...axis, size: 42, space: 28, values: (_u, v) => v.map((n) => (n >= 1000 ? n / 1000 + 'k' : String(n))) }],
          series: [
            { value: (_u, t) => (t === null ? '–' : new Date(t * 1000).toLocaleTimeString('en-GB')) },
            ...lines.map((l, i) => {
              const c = colorOf(ink, l.color)
              return {
                label: l.label, stroke: c, width: stacked || bars ? 0 : 1.6, fill: veil(c, stacked ? 0.75 : bars ? 0.75 : 0.14), points: { show: false },
                paths: bars ? uPlot.paths.bars!({ size: [0.8, 24, 2] }) : stacked ? uPlot.paths.stepped!({ align: -1 }) : undefined,
                value: (_u: uPlot, _v: number | null, _s: number, at: number | null) => (at === null ? '–' : rate(raw.current[i + 1]?.[at])),
              }
            }),
          ],
          // The upper of two piled lines is filled down to the lower one only.
          bands: stacked ? lines.slice(1).map((_, i) => ({ series: [i + 2, i + 1] as [number, number] })) : [],
        },
        shown as uPlot.AlignedData,
        box,
      )
    }
    draw()
    const wide = new ResizeObserver(() => plot.current?.setSize({ width: box.clientWidth, height }))
    wide.observe(box)
    const dark = matchMedia('(prefers-color-scheme: dark)')
    dark.addEventListener('change', draw)
    return () => {
      dark.removeEventListener('change', draw)
      wide.disconnect()
      plot.current?.destroy()
      plot.current = undefined
    }
  }, [chosen, lines, stacked, bars])
  useEffect(() => plot.current?.setData((stacked ? pile(data) : data) as uPlot.AlignedData), [data])
  return (
    <figure class="chart">
      <figcaption><strong>{title}</strong> <span class="muted">{summary}</span></figcaption>
      <div ref={root} role="img" aria-label={title + ': ' + summary} />
      <span ref={probe} hidden />
    </figure>
  )
}
