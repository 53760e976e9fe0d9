import { inThreads } from '../../support/seeds.ts'
import { type Counts, noCounts, type Progress } from './batch.ts'

/** Minimum number of responses of a seed. */
const PER_SEED = 300

/** How much more memory a thread may keep than after its first seed, in bytes. */
export const MOST_KEPT: number = 64 * 2 ** 20

export interface Summary extends Counts {
  seeds: number
  cpu: number
  /** Maximum memory that a thread kept after a seed, and the memory after its first seed, in bytes. */
  memory: { readonly first: number; readonly most: number }
  elapsed: number
}

/** Runs seeds from `from` on in threads until at least this many responses were sent. */
export async function fuzz(
  answers: number,
  from: number,
  threads: number,
  onProgress?: (summary: Summary) => void,
): Promise<Summary> {
  const summary: Summary = { ...noCounts(), seeds: 0, cpu: 0, memory: { first: 0, most: 0 }, elapsed: 0 }
  await inThreads<Progress>(
    new URL('./batch.ts', import.meta.url),
    { from, count: Math.ceil(answers / PER_SEED), threads },
    ({ exchanges, answers, accepted, failures, memory }, times) => {
      summary.seeds++
      summary.exchanges += exchanges
      summary.answers += answers
      summary.accepted += accepted
      summary.failures.push(...failures)
      const first = summary.seeds <= threads ? Math.max(memory, summary.memory.first) : summary.memory.first
      summary.memory = { first, most: Math.max(memory, summary.memory.most) }
      Object.assign(summary, times)
      onProgress?.(summary)
      return false
    },
  )
  return summary
}
