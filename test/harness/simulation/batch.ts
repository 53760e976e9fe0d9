/** Runs seeds in a worker thread. */
import { parentPort, workerData } from 'node:worker_threads'
import { type Batch, cpuClock, type Report } from '../../support/seeds.ts'
import { nextLoop } from '../../support/virtual-time.ts'
import { planOf } from './plan.ts'
import { simulate } from './simulate.ts'

interface Task extends Batch {
  /**
   * True to stop at the first seed that breaks a promise. An error of a run is not proof of a
   * broken promise.
   */
  readonly untilFailure: boolean
}

export interface Failure {
  readonly seed: number
  readonly broken: readonly string[]
  readonly threw: boolean
}

export interface Counts {
  seeds: number
  requests: number
  charges: number
  deaths: number
  readonly failures: Failure[]
}

export function noCounts(): Counts {
  return { seeds: 0, requests: 0, charges: 0, deaths: 0, failures: [] }
}

export interface Progress extends Counts, Report {}

const REPORT = 500

async function run({ from, to, stride, untilFailure }: Task): Promise<void> {
  // Omit stack traces: thousands of runs a second throw errors.
  Error.stackTraceLimit = 0
  const cpu = cpuClock()
  // Each of these errors would end a caller's process.
  let unhandled: string[] = []
  process.on('unhandledRejection', (reason) => unhandled.push(`threw, and nobody handled it: ${reason}`))
  let since = noCounts()
  const report = (): void => {
    parentPort?.postMessage({ ...since, cpu: cpu() } satisfies Progress)
    since = noCounts()
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
    if (since.seeds >= REPORT) report()
  }
  report()
}

if (parentPort !== null) await run(workerData as Task)
