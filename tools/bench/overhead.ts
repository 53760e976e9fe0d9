/** Time and CPU of one request, as ratios to raw `fetch` in the same round. */
import { type Cell, compare } from './blocks.ts'
import { BASELINE, contenders } from './contenders.ts'
import { startService } from './service.ts'

/** The requests, and how many are concurrent. */
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

/** A page of 1,000 rows, for information and for some contenders only. */
export const LONG_LIST = { name: 'list of 1,000', call: 'longList', at: 1 } as const
type Task = (typeof TASKS)[number] | typeof LONG_LIST

export type Overhead = ReadonlyMap<string, ReadonlyMap<string, Cell>>

/**
 * Calls in a block, and before the first block. A page of 1,000 rows takes as long as about twenty
 * requests.
 */
function amount({ call, at }: Task): { calls: number; warmUp: number } {
  return call === 'longList' ? { calls: 3, warmUp: 100 } : { calls: Math.max(24, at), warmUp: 2_000 }
}

/** Runs the contenders one after the other, in a new order in each round. */
export async function measureOverhead(rounds: number): Promise<Overhead> {
  const service = await startService(0, 2_000)
  const everybody = await contenders(service.url)
  const results = new Map<string, ReadonlyMap<string, Cell>>()
  for (const task of [...TASKS, LONG_LIST]) {
    const subjects = new Map(
      everybody.flatMap((contender) => {
        const send = contender[task.call]
        return send === undefined ? [] : [[contender.name, send] as const]
      }),
    )
    const cells = await compare(subjects, {
      rounds,
      at: task.at,
      ...amount(task),
      isBaseline: (name) => name.startsWith(BASELINE),
    })
    for (const [name, cell] of cells) results.set(name, new Map(results.get(name)).set(task.name, cell))
    process.stderr.write(`${task.name}: done\n`)
  }
  service.close()
  return results
}
