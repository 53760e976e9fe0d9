/**
 * Batches of exchanges. A seed is a batch, which fast-check draws, repeats and shrinks. Also runs
 * in a worker thread.
 */
import { parentPort, workerData } from 'node:worker_threads'
import fc from 'fast-check'
import { collect, used } from '../../support/heap.ts'
import { type Batch, cpuClock, type Report } from '../../support/seeds.ts'
import { type AnswerPlan, endlessPlan } from './answers.ts'
import { CALLS, type Exchange, exchange, runExchange } from './exchange.ts'

export const BATCH = 250

export interface Counts {
  exchanges: number
  answers: number
  accepted: number
  failures: { readonly seed: number; readonly report: string }[]
}

export function noCounts(): Counts {
  return { exchanges: 0, answers: 0, accepted: 0, failures: [] }
}

/** Runs the exchanges of a seed, or the one at `path`. Failures are shrunk and described. */
export async function runSeed(seed: number, counts: Counts, path?: string): Promise<void> {
  // Omit stack traces: thousands of errors are thrown each second.
  const { stackTraceLimit } = Error
  if (path === undefined) Error.stackTraceLimit = 0
  let current: Exchange | undefined
  const lost: unknown[] = []
  const onLost = (reason: unknown): void => void lost.push(reason)
  process.on('unhandledRejection', onLost)
  const details = await fc.check(
    fc.asyncProperty(exchange, async (plan) => {
      current = plan
      const { broken, answers, accepted } = await runExchange(plan)
      counts.exchanges++
      counts.answers += answers
      if (accepted) counts.accepted++
      if (broken.length > 0) throw new Error(broken.join('\n'))
      if (lost.length > 0) throw new Error(`nobody handled ${String(lost.splice(0).at(0))}`)
    }),
    { seed, numRuns: BATCH, examples: examplesOf(seed), ...(path === undefined ? {} : { path }) },
  )
  await new Promise((resolve) => setImmediate(resolve))
  process.off('unhandledRejection', onLost)
  Error.stackTraceLimit = stackTraceLimit
  if (!details.failed && lost.length === 0) return
  const replay = `npx node test/harness/fuzz/run.ts --seed ${seed}${details.counterexamplePath === null ? '' : ` --path ${details.counterexamplePath}`}`
  const [shrunk] = details.counterexample ?? [current]
  counts.failures.push({
    seed,
    report: `${replay}\n${String(details.errorInstance ?? `nobody handled ${String(lost[0])}`)}\n${JSON.stringify(shrunk)}`,
  })
}

/**
 * These are rarely drawn, so add one of each call across the seeds: a valid response and an endless
 * stream.
 */
function examplesOf(seed: number): [Exchange][] {
  const names = Object.keys(CALLS)
  const example = (turn: number, answer: AnswerPlan): [Exchange] => {
    const call = names[turn % names.length] ?? ''
    return [{ call, answers: [answer], maxRetries: 0, name: 0 }]
  }
  const flawless = example(seed, { ...endlessPlan, fitting: true, delivery: 'whole' })
  if (seed % 8 !== 0) return [flawless]
  const status = [200, 201, 400, 500][(seed / 8) % 4] ?? 200
  return [flawless, example(seed / 8, { ...endlessPlan, status })]
}

export interface Progress extends Counts, Report {
  /** Bytes that this thread keeps after a garbage collection. */
  readonly memory: number
}

async function run({ from, to, stride }: Batch): Promise<void> {
  const cpu = cpuClock()
  for (let seed = from; seed < to; seed += stride) {
    const counts = noCounts()
    await runSeed(seed, counts)
    collect()
    parentPort?.postMessage({ ...counts, cpu: cpu(), memory: used() } satisfies Progress)
  }
}

if (parentPort !== null && typeof (workerData as Partial<Batch> | null)?.stride === 'number')
  await run(workerData as Batch)
