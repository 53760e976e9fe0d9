/** Median and quartiles. */
export interface Spread {
  readonly median: number
  readonly low: number
  readonly high: number
}

/** The spread of at least one value. */
export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number): number => sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN
  return { median: at(0.5), low: at(0.25), high: at(0.75) }
}

/** Returns the values in random order, so that no contender always follows the same one. */
export function shuffled<T>(values: readonly T[]): T[] {
  return values
    .map((value) => ({ value, key: Math.random() }))
    .toSorted((a, b) => a.key - b.key)
    .map(({ value }) => value)
}
