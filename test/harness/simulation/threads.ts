import { fileURLToPath, pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { root } from '../../../scripts/ensure-built.ts'
import { type Bundle, bundleOf } from '../../support/bundle.ts'
import { seamsForEsbuild } from '../crash/seams.ts'
import type { Batch, Failure, Progress } from './batch.ts'

/**
 * Bundles the simulation, or another test program, with seams. The bug that the bundle's `sow`
 * inserts applies to the whole program.
 */
export async function bundle(program: URL = new URL('./batch.ts', import.meta.url)): Promise<Bundle> {
  const parts = [program, new URL('../crash/seeded-bugs.ts', import.meta.url)].map((url) =>
    fileURLToPath(url),
  )
  const contents = parts.map((part) => `export * from ${JSON.stringify(part)}`).join('\n')
  return await bundleOf('simulation', { stdin: { contents, resolveDir: root }, plugins: [seamsForEsbuild] })
}

/** A test program in this process, with a seeded bug. */
export async function withBug<Program>(
  name: string,
  program: URL,
  use: (program: Program) => Promise<void>,
): Promise<void> {
  const { file, remove } = await bundle(program)
  try {
    const loaded: Program & typeof import('../crash/seeded-bugs.ts') = await import(pathToFileURL(file).href)
    loaded.sow(name)
    await use(loaded)
  } finally {
    remove()
  }
}

/** The results of many seeds. */
export interface Summary {
  seeds: number
  requests: number
  charges: number
  deaths: number
  failures: Failure[]
  /** CPU time of all threads, in milliseconds. */
  cpu: number
  /** Elapsed time, in milliseconds. */
  elapsed: number
}

export interface RunOptions {
  readonly from: number
  readonly count: number
  readonly threads: number
  /**
   * Stops at the first seed that breaks a promise. An error of a run is not proof of a broken
   * promise.
   */
  readonly untilFailure?: boolean
  /** Name of the seeded bug to insert. */
  readonly bug?: string
  readonly onProgress?: (summary: Summary) => void
}

/** Runs seeds in threads. */
export async function runSeeds({ file }: Bundle, options: RunOptions): Promise<Summary> {
  const { from, count, threads, untilFailure = false, bug, onProgress } = options
  const began = performance.now()
  const summary: Summary = {
    seeds: 0,
    requests: 0,
    charges: 0,
    deaths: 0,
    failures: [],
    cpu: 0,
    elapsed: 0,
  }
  const cpus = new Map<Worker, number>()
  const all: Worker[] = []
  await Promise.all(
    Array.from(
      { length: threads },
      (_, index) =>
        new Promise<void>((resolve, reject) => {
          const workerData: Batch = {
            from: from + index,
            to: from + count,
            stride: threads,
            untilFailure,
            bug,
          }
          const worker = new Worker(file, { workerData, resourceLimits: { maxYoungGenerationSizeMb: 384 } })
          all.push(worker)
          worker.on('message', (progress: Progress) => {
            summary.seeds += progress.seeds
            summary.requests += progress.requests
            summary.charges += progress.charges
            summary.deaths += progress.deaths
            summary.failures.push(...progress.failures)
            cpus.set(worker, progress.cpu)
            summary.cpu = [...cpus.values()].reduce((sum, cpu) => sum + cpu, 0)
            summary.elapsed = performance.now() - began
            onProgress?.(summary)
            if (untilFailure && summary.failures.some(({ threw }) => !threw))
              for (const each of all) void each.terminate()
          })
          worker.once('error', reject)
          worker.once('exit', () => resolve())
        }),
    ),
  )
  summary.failures.sort((a, b) => a.seed - b.seed)
  return summary
}
