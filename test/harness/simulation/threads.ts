import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { build, type Plugin } from 'esbuild'
import type { Edit } from '../crash/seeded-bugs.ts'
import type { Batch, Failure, Progress } from './batch.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const SOURCE = join(ROOT, 'src')

/** The simulation as one file, with changes to the source. Call `remove` when no thread needs it any more. */
export interface Bundle {
  readonly file: string
  remove(): void
}

let bundles = 0

/**
 * Bundles the simulation, or another program of the tests.
 * @throws if an edit does not fit exactly one place
 */
export async function bundle(
  edits: readonly Edit[] = [],
  program: URL = new URL('./batch.ts', import.meta.url),
): Promise<Bundle> {
  const folder = join(ROOT, '.tmp')
  mkdirSync(folder, { recursive: true })
  const file = join(folder, `simulation-${process.pid}-${++bundles}.mjs`)
  await build({
    entryPoints: [fileURLToPath(program)],
    outfile: file,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node22',
    logLevel: 'silent',
    plugins: [edited(edits)],
  })
  return { file, remove: () => rmSync(file, { force: true }) }
}

/** Puts edits into the files that they are for. */
function edited(edits: readonly Edit[]): Plugin {
  return {
    name: 'edits',
    setup({ onLoad, onEnd }) {
      const applied = new Set<Edit>()
      onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const own = edits.filter(({ file }) => path === join(SOURCE, file))
        if (own.length === 0) return undefined
        let contents = readFileSync(path, 'utf8')
        for (const edit of own) {
          const parts = contents.split(edit.search)
          if (parts.length !== 2)
            throw new Error(`${edit.file} has ${parts.length - 1} places that fit "${edit.search}"`)
          contents = parts.join(edit.replace)
          applied.add(edit)
        }
        return { contents, loader: 'ts' }
      })
      onEnd(() => {
        const missed = edits.find((edit) => !applied.has(edit))
        if (missed !== undefined) throw new Error(`the bundle does not reach ${missed.file}`)
      })
    },
  }
}

/** What came of many seeds. */
export interface Summary {
  seeds: number
  requests: number
  charges: number
  deaths: number
  failures: Failure[]
  /** CPU time of all threads, milliseconds. */
  cpu: number
  /** Time that passed, milliseconds. */
  elapsed: number
}

export interface RunOptions {
  readonly from: number
  readonly count: number
  readonly threads: number
  /** Stops at the first seed that breaks a promise; a run that threw an error is no proof of that. */
  readonly untilFailure?: boolean
  readonly onProgress?: (summary: Summary) => void
}

/** Runs seeds in threads. */
export async function runSeeds({ file }: Bundle, options: RunOptions): Promise<Summary> {
  const { from, count, threads, untilFailure = false, onProgress } = options
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
          const workerData: Batch = { from: from + index, to: from + count, stride: threads, untilFailure }
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
