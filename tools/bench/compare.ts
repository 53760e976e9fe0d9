/** Compares calls in blocks that take turns, so that other load of the machine affects all of them. */

/** Time and CPU of one call in microseconds. */
interface Cost {
  readonly time: number
  readonly cpu: number
}

/** What is compared, and how. */
export interface Comparison {
  readonly subjects: ReadonlyMap<string, () => Promise<unknown>>
  readonly rounds: number
  /** Calls of a block. */
  readonly calls: number
  /** How many of them are under way at a time. */
  readonly at: number
  /** Calls of each subject before the first round, until the engine has compiled what is hot. */
  readonly warmUp: number
}

async function block(call: () => Promise<unknown>, at: number, calls: number): Promise<Cost> {
  const cpuBefore = process.cpuUsage()
  const before = performance.now()
  let left = calls
  const worker = async (): Promise<void> => {
    while (left-- > 0) await call()
  }
  await Promise.all(Array.from({ length: at }, worker))
  const time = performance.now() - before
  const { user, system } = process.cpuUsage(cpuBefore)
  return { time: (time * 1000) / calls, cpu: (user + system) / calls }
}

/** The costs of each subject in each round. */
export async function compare(comparison: Comparison): Promise<ReadonlyMap<string, readonly Cost[]>> {
  const { subjects, rounds, calls, at, warmUp } = comparison
  for (const call of subjects.values()) await block(call, at, warmUp)
  const found = new Map([...subjects.keys()].map((name) => [name, [] as Cost[]]))
  for (let round = 0; round < rounds; round++)
    for (const [name, call] of shuffled([...subjects])) found.get(name)?.push(await block(call, at, calls))
  return found
}

/** Median of the ratios of two series, round by round. */
export function ratio(values: readonly number[], baseline: readonly number[]): number {
  return median(values.map((value, round) => value / (baseline[round] ?? Number.NaN)))
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

/** In random order, so that no subject always follows the same one. */
export function shuffled<T>(values: readonly T[]): T[] {
  return values
    .map((value) => ({ value, key: Math.random() }))
    .toSorted((a, b) => a.key - b.key)
    .map(({ value }) => value)
}

/** A table in Markdown. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`
  return line(head) + line(head.map((_, column) => (column === 0 ? '---' : '---:'))) + rows.map(line).join('')
}
