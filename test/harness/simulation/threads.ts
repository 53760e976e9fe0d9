import { fileURLToPath, pathToFileURL } from 'node:url'
import { root } from '../../../tools/build/ensure-built.ts'
import { inThreads } from '../../support/seeds.ts'
import { seamsForEsbuild } from '../crash/seams.ts'
import { type Counts, noCounts, type Progress } from './batch.ts'
import { type Bundle, bundleOf } from './bundle.ts'

const BATCH = new URL('./batch.ts', import.meta.url)

export async function bundle(): Promise<Bundle> {
  return await bundleOf('simulation', { entryPoints: [fileURLToPath(BATCH)] })
}

/**
 * Bundles the simulation, or another test program, with seams. The bug of the thread, or the one
 * that the bundle's `sow` inserts, applies to the whole program.
 */
export async function bundleWithSeams(program: URL = BATCH): Promise<Bundle> {
  const parts = [new URL('../crash/sow-in-thread.ts', import.meta.url), program]
  const contents = parts.map((url) => `export * from ${JSON.stringify(fileURLToPath(url))}`).join('\n')
  return await bundleOf('simulation', { stdin: { contents, resolveDir: root }, plugins: [seamsForEsbuild] })
}

export async function withBug<Program>(
  name: string,
  program: URL,
  use: (program: Program) => Promise<void>,
): Promise<void> {
  const { file, remove } = await bundleWithSeams(program)
  try {
    const loaded: Program & typeof import('../crash/seeded-bugs.ts') = await import(pathToFileURL(file).href)
    loaded.sow(name)
    await use(loaded)
  } finally {
    remove()
  }
}

/** The results of many seeds, and their times in milliseconds: of all threads, and elapsed. */
export interface Summary extends Counts {
  cpu: number
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
  readonly bug?: string
  readonly onProgress?: (summary: Summary) => void
}

export async function runSeeds({ file }: Bundle, options: RunOptions): Promise<Summary> {
  const { untilFailure = false, bug, onProgress } = options
  const summary: Summary = { ...noCounts(), cpu: 0, elapsed: 0 }
  await inThreads<Progress>(
    file,
    options,
    ({ seeds, requests, charges, deaths, failures }, times) => {
      summary.seeds += seeds
      summary.requests += requests
      summary.charges += charges
      summary.deaths += deaths
      summary.failures.push(...failures)
      Object.assign(summary, times)
      onProgress?.(summary)
      return untilFailure && summary.failures.some(({ threw }) => !threw)
    },
    { workerData: { untilFailure, bug }, resourceLimits: { maxYoungGenerationSizeMb: 384 } },
  )
  summary.failures.sort((a, b) => a.seed - b.seed)
  return summary
}
