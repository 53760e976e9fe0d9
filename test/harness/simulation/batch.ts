/** Runs seeds in a worker thread, from a bundle with seams for a seeded bug. */
import { parentPort, workerData } from 'node:worker_threads'
import { nextLoop } from '../../support/virtual-time.ts'
import { sow } from '../crash/seeded-bugs.ts'
import { planOf } from './plan.ts'
import { simulate } from './simulate.ts'

/** Seeds `from`, `from + stride`, … below `to`. */
export interface Batch {
  readonly from: number
  readonly to: number
  readonly stride: number
  /**
   * True to stop at the first seed that breaks a promise. An error of a run is not proof of a
   * broken promise.
   */
  readonly untilFailure: boolean
  /** Name of the inserted bug. */
  readonly bug?: string | undefined
}

/** A run with a failure. */
export interface Failure {
  readonly seed: number
  readonly broken: readonly string[]
  readonly threw: boolean
}

/** A thread's report of everything since the last one. */
export interface Progress {
  readonly seeds: number
  readonly requests: number
  readonly charges: number
  readonly deaths: number
  readonly failures: readonly Failure[]
  /** CPU time of this thread so far, in milliseconds. */
  readonly cpu: number
  readonly over: boolean
}

/** Seeds between two reports. */
const REPORT = 500

async function run({ from, to, stride, untilFailure, bug }: Batch): Promise<void> {
  if (bug !== undefined) sow(bug)
  // Omit stack traces: thousands of runs a second throw errors.
  Error.stackTraceLimit = 0
  const began = process.threadCpuUsage()
  // Each of these errors would end a caller's process.
  let unhandled: string[] = []
  process.on('unhandledRejection', (reason) => unhandled.push(`threw, and nobody handled it: ${reason}`))
  let since = empty()
  const report = (over: boolean): void => {
    const { user, system } = process.threadCpuUsage(began)
    parentPort?.postMessage({ ...since, cpu: (user + system) / 1000, over } satisfies Progress)
    since = empty()
  }
  for (let seed = from; seed < to; seed += stride) {
    const { broken, threw, requests, charges, deaths } = await simulate(planOf(seed))
    await nextLoop()
    since.seeds++
    since.requests += requests
    since.charges += charges
    since.deaths += deaths
    if (broken.length + unhandled.length > 0) {
      const failure = { seed, broken: [...broken, ...unhandled], threw: threw || unhandled.length > 0 }
      unhandled = []
      since.failures.push(failure)
      if (untilFailure && !failure.threw) break
    }
    if (since.seeds >= REPORT) report(false)
  }
  report(true)
}

function empty() {
  return {
    seeds: 0,
    requests: 0,
    charges: 0,
    deaths: 0,
    failures: [] as Failure[],
  }
}

if (parentPort !== null) await run(workerData as Batch)
