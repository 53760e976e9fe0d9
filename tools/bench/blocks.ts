/** Wall time and CPU of calls, in blocks that take turns, as ratios to the baseline of the same round. */
import { type Spread, shuffled, spread } from './statistics.ts'

/** One cell: ratios to the mean of the baselines. */
export interface Cell {
  readonly wall: Spread
  readonly cpu: Spread
}

/** Time and CPU of one call. */
interface Cost {
  readonly wall: number
  readonly cpu: number
}

/** How calls are compared. */
export interface Comparison {
  readonly rounds: number
  /** Calls of a block. */
  readonly calls: number
  /** How many of them are under way at a time. */
  readonly at: number
  /** Calls of each before anything is measured, until the engine has compiled what is hot. */
  readonly warmUp: number
  readonly isBaseline: (name: string) => boolean
}

async function block(call: () => Promise<unknown>, at: number, calls: number): Promise<Cost> {
  const cpuBefore = process.cpuUsage()
  const before = performance.now()
  let left = calls
  const worker = async (): Promise<void> => {
    while (left-- > 0) await call()
  }
  await Promise.all(Array.from({ length: at }, worker))
  const wall = performance.now() - before
  const { user, system } = process.cpuUsage(cpuBefore)
  return { wall: wall / calls, cpu: (user + system) / calls }
}

/** Runs a block of each in turn, in a new order each round. */
export async function compare(
  subjects: ReadonlyMap<string, () => Promise<unknown>>,
  { rounds, calls, at, warmUp, isBaseline }: Comparison,
): Promise<ReadonlyMap<string, Cell>> {
  for (const call of subjects.values()) await block(call, at, warmUp)
  const ratios = new Map(
    [...subjects.keys()].map((name) => [name, { wall: [] as number[], cpu: [] as number[] }]),
  )
  for (let round = 0; round < rounds; round++) {
    const measured = new Map<string, Cost>()
    for (const [name, call] of shuffled([...subjects])) measured.set(name, await block(call, at, calls))
    const baselines = [...measured].filter(([name]) => isBaseline(name)).map(([, cost]) => cost)
    const mean = (key: keyof Cost): number =>
      baselines.reduce((sum, cost) => sum + cost[key], 0) / baselines.length
    for (const [name, { wall, cpu }] of measured) {
      ratios.get(name)?.wall.push(wall / mean('wall'))
      ratios.get(name)?.cpu.push(cpu / mean('cpu'))
    }
  }
  return new Map([...ratios].map(([name, { wall, cpu }]) => [name, { wall: spread(wall), cpu: spread(cpu) }]))
}
