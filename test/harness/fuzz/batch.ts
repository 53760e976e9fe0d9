/** Batches of exchanges. A seed is a batch, which fast-check draws, repeats and shrinks, in a worker thread, too. */
import fc from 'fast-check'
import { collect, used } from '../../support/heap.ts'
import { inThreads, type RunOptions, runInThread, type Summary, type Tally } from '../../support/seeds.ts'
import { type AnswerPlan, endlessPlan } from './answers.ts'
import { CALLS, type Exchange, exchange, runExchange } from './exchange.ts'

const BATCH = 250
/** Minimum number of responses of a seed. */
const PER_SEED = 300
/** How much more memory a thread may keep than after its first seed, in bytes. */
const MOST_KEPT = 64 * 2 ** 20

const noCounts = () => ({ exchanges: 0, answers: 0, accepted: 0 })
export type Count = keyof ReturnType<typeof noCounts>
export const noTally = (): Tally<Count> => ({ counts: noCounts(), failures: [], cpu: 0 })

/** Runs the exchanges of a seed, or the one at `path`. Failures are shrunk and described. */
export async function runSeed(
  seed: number,
  { counts, failures }: Tally<Count>,
  path?: string,
): Promise<void> {
  const details = await fc.check(
    fc.asyncProperty(exchange, async (plan) => {
      const { broken, answers, accepted } = await runExchange(plan)
      counts.exchanges++
      counts.answers += answers
      if (accepted) counts.accepted++
      if (broken.length > 0) throw new Error(broken.join('\n'))
    }),
    { seed, numRuns: BATCH, examples: examplesOf(seed), ...(path === undefined ? {} : { path }) },
  )
  if (!details.failed) return
  const replay = `npx node test/harness/fuzz/run.ts --seed ${seed} --path ${details.counterexamplePath}`
  const broken = [replay, String(details.errorInstance), JSON.stringify(details.counterexample?.[0])]
  failures.push({ seed, broken, threw: false })
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

/** Runs seeds from `from` on in threads until at least this many responses were sent. */
export async function fuzz(
  answers: number,
  options: Omit<RunOptions<Count>, 'count'>,
): Promise<Summary<Count>> {
  const program = new URL('./batch.ts', import.meta.url)
  return await inThreads(program, noCounts(), { ...options, count: Math.ceil(answers / PER_SEED) })
}

let first: number | undefined

await runInThread(1, noCounts, async (seed, tally) => {
  await runSeed(seed, tally)
  collect()
  first ??= used()
  const more = used() - first
  if (more > MOST_KEPT)
    tally.failures.push({ seed, broken: [`the thread keeps ${more} bytes more than at first`], threw: false })
})
