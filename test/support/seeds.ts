/** Runs seeds in threads, and reads the command line of programs that do. */
import { availableParallelism } from 'node:os'
import { parentPort, Worker, workerData } from 'node:worker_threads'
import { createRandom } from '../../src/sandbox/service/random.ts'
import { positiveInteger, UsageError } from '../../tools/programs/arguments.ts'

/** The seeds of a thread: `from`, `from + stride`, … below `to`. */
interface Batch {
  readonly from: number
  readonly to: number
  readonly stride: number
}

export interface Failure {
  readonly seed: number
  readonly broken: readonly string[]
  /** True if the run ended in an error, which is not proof of a broken promise. */
  readonly threw: boolean
}

/** What threads have counted, and their CPU time so far, in milliseconds. */
export interface Tally<Name extends string> {
  readonly counts: Record<Name, number>
  readonly failures: Failure[]
  cpu: number
}

export interface Summary<Name extends string> extends Tally<Name> {
  /** Time since the start, in milliseconds. */
  elapsed: number
}

export interface RunOptions<Name extends string> {
  readonly from: number
  readonly count: number
  readonly threads: number
  /** Stops at the first seed that breaks a promise. */
  readonly untilFailure?: boolean
  /** A seeded bug for programs that were bundled with seams. */
  readonly bug?: string
  readonly onProgress?: (summary: Summary<Name>) => void
}

/** Runs a program in threads that share the seeds, and adds up what they report. */
export async function inThreads<Name extends string>(
  program: string | URL,
  counts: Record<Name, number>,
  { from, count, threads, untilFailure = false, bug, onProgress }: RunOptions<Name>,
): Promise<Summary<Name>> {
  const began = performance.now()
  const cpus = new Map<number, number>()
  const summary: Summary<Name> = { counts, failures: [], cpu: 0, elapsed: 0 }
  const workers = Array.from({ length: threads }, (_, index) => {
    const batch: Batch = { from: from + index, to: from + count, stride: threads }
    const workerData = { ...batch, untilFailure, bug }
    return new Worker(program, { workerData, resourceLimits: { maxYoungGenerationSizeMb: 384 } })
  })
  const ended = workers.map(
    (worker, index) =>
      new Promise<void>((resolve, reject) => {
        worker.on('message', (report: Tally<Name>) => {
          cpus.set(index, report.cpu)
          summary.cpu = [...cpus.values()].reduce((sum, each) => sum + each, 0)
          summary.elapsed = performance.now() - began
          for (const name in counts) counts[name] += report.counts[name]
          summary.failures.push(...report.failures)
          onProgress?.(summary)
          if (untilFailure && summary.failures.some(({ threw }) => !threw))
            for (const each of workers) void each.terminate()
        })
        worker.once('error', reject)
        worker.once('exit', () => resolve())
      }),
  )
  await Promise.all(ended)
  summary.failures.sort((a, b) => a.seed - b.seed)
  return summary
}

/** The program of a thread: runs its seeds, and reports after each `every`. Does nothing elsewhere. */
export async function runInThread<Name extends string>(
  every: number,
  noCounts: () => Record<Name, number>,
  run: (seed: number, tally: Tally<Name>) => Promise<void>,
): Promise<void> {
  const task: Partial<Batch & { readonly untilFailure: boolean }> | null = workerData
  const { from, to, stride, untilFailure } = task ?? {}
  if (parentPort === null || from === undefined || to === undefined || stride === undefined) return
  // Omit stack traces: thousands of errors are thrown each second.
  Error.stackTraceLimit = 0
  const began = process.threadCpuUsage()
  // Each of these errors would end a caller's process.
  let unhandled: string[] = []
  process.on('unhandledRejection', (reason) => unhandled.push(`threw, and nobody handled it: ${reason}`))
  const none = (): Tally<Name> => ({ counts: noCounts(), failures: [], cpu: 0 })
  let since = none()
  const report = (): void => {
    const { user, system } = process.threadCpuUsage(began)
    parentPort?.postMessage({ ...since, cpu: (user + system) / 1000 } satisfies Tally<Name>)
    since = none()
  }
  for (let seed = from, runs = 1; seed < to; seed += stride, runs++) {
    await run(seed, since)
    // Node reports an unhandled rejection by then.
    await new Promise((resolve) => setImmediate(resolve))
    if (unhandled.length > 0) since.failures.push({ seed, broken: unhandled, threw: true })
    unhandled = []
    if (untilFailure === true && since.failures.some(({ threw }) => !threw)) break
    if (runs % every === 0) report()
  }
  report()
}

/** The options of programs that run one seed or many. */
export const SEED_OPTIONS = {
  seed: { type: 'string' },
  from: { type: 'string' },
  threads: { type: 'string' },
} as const

/** Reads {@link SEED_OPTIONS} and the amount, which the usage calls `name`. */
export function readSeeds(
  name: string,
  { seed, from, threads }: { readonly [Name in keyof typeof SEED_OPTIONS]?: string | undefined },
  count: string | undefined,
  usual: string,
) {
  if (seed !== undefined && (count ?? from ?? threads) !== undefined)
    throw new UsageError(`--seed runs one seed: neither ${name} nor --from nor --threads go with it.`)
  return {
    count: positiveInteger(name, count ?? usual),
    seed: seed === undefined ? undefined : positiveInteger('--seed', seed),
    from: positiveInteger('--from', from ?? '1'),
    threads: positiveInteger('--threads', threads ?? String(Math.min(availableParallelism(), 8))),
  }
}

/** Further failing seeds are counted, but not printed. */
const MOST_TOLD = 20

/** Prints failing seeds as they come, and a line of progress every ten seconds. */
export function printProgress<Name extends string>(again: string): (summary: Summary<Name>) => void {
  let last = performance.now()
  let told = 0
  return ({ counts, failures, elapsed }) => {
    for (const { seed, broken } of failures.slice(told, MOST_TOLD))
      console.log(`seed ${seed}: ${broken.join('\n  ')}\n  ${again} --seed ${seed}`)
    told = failures.length
    if (performance.now() - last < 10_000) return
    last = performance.now()
    console.log(`${JSON.stringify(counts)}, ${told} failed, ${(elapsed / 1000).toFixed(0)} s`)
  }
}

/** Prints what came of all seeds. `count` is how much of one thing there must be. */
export function printSummary<Name extends string>(
  { counts, failures, cpu, elapsed }: Summary<Name>,
  name: Name,
  count: number,
): void {
  console.log(
    `${(elapsed / 1000).toFixed(0)} s, ${Math.round((counts[name] / elapsed) * 1000)} ${name} a second, ` +
      `${Math.round((counts[name] / cpu) * 1000)} a second of CPU time, Node ${process.versions.node}\n` +
      `${JSON.stringify(counts)}, ${failures.length} seeds with something wrong`,
  )
  process.exitCode = failures.length === 0 && counts[name] >= count ? 0 : 1
}

/** A stream of random choices. The same seed and stream always give the same ones. */
export class Draw {
  readonly #random: ReturnType<typeof createRandom>

  constructor(seed: number, stream: number) {
    // Mix twice, so that neighbouring seeds and streams are unrelated.
    this.#random = createRandom(Math.imul(seed ^ 0x5bd1e995, 0x9e3779b1) ^ Math.imul(stream + 1, 0x85ebca6b))
    this.#random.next()
  }

  /** From 0 (inclusive) to 1 (exclusive). */
  next(): number {
    return this.#random.next()
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  /** An integer from 0 (inclusive) to the bound (exclusive). */
  below(bound: number): number {
    return Math.floor(this.next() * bound)
  }

  /** An integer between two, both inclusive. */
  between(least: number, most: number): number {
    return least + this.below(most - least + 1)
  }

  pick<const T>(first: T, ...others: readonly T[]): T {
    const index = this.below(others.length + 1)
    return index === 0 ? first : (others[index - 1] ?? first)
  }

  weighted<const T>(first: readonly [T, number], ...others: readonly (readonly [T, number])[]): T {
    const all = [first, ...others]
    let left = this.next() * all.reduce((sum, [, weight]) => sum + weight, 0)
    for (const [value, weight] of all) {
      left -= weight
      if (left < 0) return value
    }
    return first[0]
  }

  subset<const T>(...values: readonly T[]): T[] {
    return values.filter(() => this.chance(0.5))
  }

  shuffled<T>(values: readonly T[]): T[] {
    return values
      .map((value) => [this.next(), value] as const)
      .sort(([a], [b]) => a - b)
      .map(([, value]) => value)
  }
}
