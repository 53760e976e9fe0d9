/** Runs seeds in threads, and reads the command line of programs that do. */
import { availableParallelism } from 'node:os'
import { Worker, type WorkerOptions } from 'node:worker_threads'
import { createRandom } from '../../src/sandbox/service/random.ts'
import { positiveInteger, UsageError } from '../../tools/programs/arguments.ts'

/** The seeds of a thread: `from`, `from + stride`, … below `to`. */
export interface Batch {
  readonly from: number
  readonly to: number
  readonly stride: number
}

/** A thread's report of everything since the last one. */
export interface Report {
  /** CPU time of this thread so far, in milliseconds. */
  readonly cpu: number
}

/** Time since the start, in milliseconds. */
export interface Times {
  /** CPU time of all threads. */
  readonly cpu: number
  readonly elapsed: number
}

/** Runs a program in threads that share the seeds. A report that returns true ends all threads. */
export async function inThreads<Progress extends Report>(
  program: string | URL,
  { from, count, threads }: { readonly from: number; readonly count: number; readonly threads: number },
  onReport: (report: Progress, times: Times) => boolean,
  { workerData, ...options }: WorkerOptions = {},
): Promise<void> {
  const began = performance.now()
  const cpus = new Map<number, number>()
  const workers = Array.from({ length: threads }, (_, index) => {
    const batch: Batch = { from: from + index, to: from + count, stride: threads }
    return new Worker(program, { ...options, workerData: { ...batch, ...workerData } })
  })
  const ended = workers.map(
    (worker, index) =>
      new Promise<void>((resolve, reject) => {
        worker.on('message', (report: Progress) => {
          cpus.set(index, report.cpu)
          const cpu = [...cpus.values()].reduce((sum, each) => sum + each, 0)
          if (onReport(report, { cpu, elapsed: performance.now() - began }))
            for (const each of workers) void each.terminate()
        })
        worker.once('error', reject)
        worker.once('exit', () => resolve())
      }),
  )
  await Promise.all(ended)
}

/** Measures the CPU time of this thread from now on, in milliseconds. */
export function cpuClock(): () => number {
  const began = process.threadCpuUsage()
  return () => {
    const { user, system } = process.threadCpuUsage(began)
    return (user + system) / 1000
  }
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

/** Prints a line of progress every ten seconds. */
export function progressPrinter(): (line: () => string) => void {
  let last = performance.now()
  return (line) => {
    if (performance.now() - last < 10_000) return
    last = performance.now()
    console.log(line())
  }
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
