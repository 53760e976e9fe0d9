import { Worker } from 'node:worker_threads'
import { type Batch, type Counts, noCounts, type Progress } from './batch.ts'

/** Minimum number of responses of a seed. */
const PER_SEED = 300

/** How much more memory a thread may keep than after its first seed, in bytes. */
export const MOST_KEPT: number = 64 * 2 ** 20

/** The results of many seeds. */
export interface Summary extends Counts {
  seeds: number
  /** CPU time of all threads, in milliseconds. */
  cpu: number
  /**
   * Maximum memory that a thread kept after a seed, and the memory after its first seed, in bytes.
   */
  memory: { readonly first: number; readonly most: number }
  /** Elapsed time, in milliseconds. */
  elapsed: number
}

/** Runs seeds from `from` on in threads until at least this many responses were sent. */
export async function fuzz(
  answers: number,
  from: number,
  threads: number,
  onProgress?: (summary: Summary) => void,
): Promise<Summary> {
  const began = performance.now()
  const summary: Summary = { ...noCounts(), seeds: 0, cpu: 0, memory: { first: 0, most: 0 }, elapsed: 0 }
  const cpus = new Map<number, number>()
  const to = from + Math.ceil(answers / PER_SEED)
  const thread = (index: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const workerData: Batch = { from: from + index, to, stride: threads }
      const worker = new Worker(new URL('./batch.ts', import.meta.url), { workerData })
      worker.on('message', ({ exchanges, answers, accepted, failures, cpu, memory }: Progress) => {
        summary.seeds++
        summary.exchanges += exchanges
        summary.answers += answers
        summary.accepted += accepted
        summary.failures.push(...failures)
        cpus.set(index, cpu)
        summary.cpu = [...cpus.values()].reduce((sum, each) => sum + each, 0)
        summary.elapsed = performance.now() - began
        const first = summary.seeds <= threads ? Math.max(memory, summary.memory.first) : summary.memory.first
        summary.memory = { first, most: Math.max(memory, summary.memory.most) }
        onProgress?.(summary)
      })
      worker.once('error', reject)
      worker.once('exit', () => resolve())
    })
  await Promise.all(Array.from({ length: threads }, (_, index) => thread(index)))
  return summary
}
