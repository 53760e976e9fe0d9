/** Decides whether anything grew over the samples of a run. */

export interface Look {
  readonly orders: number
  /** Bytes in use after a collection, inside and outside the heap. */
  readonly bytes: number
  readonly objects: number
  readonly listeners: number
  readonly rows: number
  /** Timers of the client in virtual time, and other resources that keep the process alive, by kind. */
  readonly resources: Readonly<Record<string, number>>
}

/**
 * Number of equal parts of a run, of which the first does not count: code is compiled and caches
 * fill.
 */
const WARM_UP = 3

/**
 * Maximum growth of each from one sample to the next, by the median of all pairs of samples, which
 * tolerates outliers. The more orders a run places between two samples, the less this is per order.
 */
const SLACK = { bytes: 80_000, objects: 40, listeners: 0.5, rows: 5, resources: 0.5 } as const

export function grown(looks: readonly Look[]): string[] {
  const later = looks.slice(Math.ceil(looks.length / WARM_UP))
  const [first] = later
  const last = later.at(-1)
  if (first === undefined || last === undefined || first === last) return ['too little was looked at']
  const orders = (last.orders - first.orders) / (later.length - 1)
  const kinds = Object.keys(SLACK) as (keyof typeof SLACK)[]
  return kinds.flatMap((kind) => {
    const rate = slope(later.map((look) => [look.orders, amountOf(look, kind)]))
    const from = amountOf(first, kind)
    const to = amountOf(last, kind)
    return rate * orders > SLACK[kind]
      ? [`${kind} from ${from} to ${to}, by ${rate.toPrecision(3)} an order`]
      : []
  })
}

function amountOf(look: Look, kind: keyof typeof SLACK): number {
  const amount = look[kind]
  if (typeof amount === 'number') return amount
  return Object.values(amount).reduce((sum, count) => sum + count, 0)
}

/** The median slope of all lines through two of the points. */
function slope(points: readonly (readonly [x: number, y: number])[]): number {
  const slopes = points
    .flatMap(([x, y], index) => points.slice(index + 1).map(([x2, y2]) => (y2 - y) / (x2 - x)))
    .sort((a, b) => a - b)
  const middle = slopes.length / 2
  return ((slopes[Math.ceil(middle) - 1] ?? 0) + (slopes[Math.floor(middle)] ?? 0)) / 2
}
