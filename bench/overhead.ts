/** Time and CPU of one request, as ratios to raw `fetch` in the same round. */
import { BASELINE, type Contender, contenders } from './contenders.ts'
import { startService } from './service.ts'
import { type Spread, shuffled, spread } from './statistics.ts'

/** What is sent, and how many at a time. */
export const TASKS = [
  { name: 'GET', call: 'get', at: 1 },
  { name: 'list of 50', call: 'list', at: 1 },
  { name: 'POST', call: 'post', at: 1 },
  { name: 'GET, 16 at a time', call: 'get', at: 16 },
  { name: 'list, 16 at a time', call: 'list', at: 16 },
  { name: 'POST, 16 at a time', call: 'post', at: 16 },
  { name: 'GET, 64 at a time', call: 'get', at: 64 },
  { name: 'list, 64 at a time', call: 'list', at: 64 },
  { name: 'POST, 64 at a time', call: 'post', at: 64 },
] as const
type Task = (typeof TASKS)[number]

/** One cell: ratios to the mean of the two baselines. */
export interface Cell {
  readonly wall: Spread
  readonly cpu: Spread
}
export type Overhead = ReadonlyMap<string, ReadonlyMap<string, Cell>>

/** Requests of each contender before a task is measured, until the engine has compiled what is hot. */
const WARM_UP = 2_000

async function block(
  contender: Contender,
  { call, at }: Task,
  requests: number,
): Promise<{ wall: number; cpu: number }> {
  const cpuBefore = process.cpuUsage()
  const before = performance.now()
  let left = requests
  const worker = async (): Promise<void> => {
    while (left-- > 0) await contender[call]()
  }
  await Promise.all(Array.from({ length: at }, worker))
  const wall = performance.now() - before
  const { user, system } = process.cpuUsage(cpuBefore)
  return { wall: wall / requests, cpu: (user + system) / requests }
}

/** Runs everybody in turn, in a new order each round. */
export async function measureOverhead(rounds: number): Promise<Overhead> {
  const service = await startService(0, 2_000)
  const everybody = await contenders(service.url)
  const results = new Map<string, ReadonlyMap<string, Cell>>()
  for (const task of TASKS) {
    const requests = Math.max(24, task.at)
    for (const contender of everybody) await block(contender, task, WARM_UP)
    const ratios = new Map(everybody.map(({ name }) => [name, { wall: [] as number[], cpu: [] as number[] }]))
    for (let round = 0; round < rounds; round++) {
      const measured = new Map<string, { wall: number; cpu: number }>()
      for (const contender of shuffled(everybody))
        measured.set(contender.name, await block(contender, task, requests))
      const baselines = [...measured].filter(([name]) => name.startsWith(BASELINE)).map(([, value]) => value)
      const mean = (key: 'wall' | 'cpu'): number =>
        baselines.reduce((sum, value) => sum + value[key], 0) / baselines.length
      for (const [name, { wall, cpu }] of measured) {
        ratios.get(name)?.wall.push(wall / mean('wall'))
        ratios.get(name)?.cpu.push(cpu / mean('cpu'))
      }
    }
    for (const [name, { wall, cpu }] of ratios) {
      const row = new Map(results.get(name))
      row.set(task.name, { wall: spread(wall), cpu: spread(cpu) })
      results.set(name, row)
    }
    process.stderr.write(`${task.name}: done\n`)
  }
  service.close()
  return results
}
