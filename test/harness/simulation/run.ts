/** Runs the simulation as a program. `--help` prints the usage. */
import { readArguments, UsageError } from '../../../tools/programs/arguments.ts'
import { printProgress, printSummary, readSeeds, SEED_OPTIONS } from '../../support/seeds.ts'
import type { Count } from './batch.ts'
import { type Plan, planOf } from './plan.ts'
import { shrink } from './shrink.ts'
import { simulate } from './simulate.ts'
import { bundle, runSeeds } from './threads.ts'

const { count, seed, whole, from, threads } = readArguments(
  {
    usage: `npx node test/harness/simulation/run.ts [COUNT] [--from SEED] [--threads N]
  runs that many seeds (default 10,000,000) and says what came of them
npx node test/harness/simulation/run.ts --seed N [--whole]
  runs one seed and tells what happens in it; a failing one is made short first (--whole leaves it as it is)`,
    positionals: 1,
    options: { ...SEED_OPTIONS, whole: { type: 'boolean', default: false } },
  },
  ({ values: { whole, ...values }, positionals: [count] }) => {
    if (values.seed === undefined && whole) throw new UsageError('--whole belongs to a --seed.')
    return { ...readSeeds('COUNT', values, count, '10_000_000'), whole }
  },
)

const PROMISES = 'What I1 to I12 promise: docs/invariants.md'

async function runOne(seed: number): Promise<void> {
  const drawn = planOf(seed)
  const failed = (await simulate(drawn)).broken.length > 0
  const { plan, without, trace, broken } =
    failed && !whole
      ? await shrink(drawn)
      : { plan: drawn, without: new Set<string>(), ...(await simulate(drawn, { traced: true })) }
  print(plan, without)
  for (const line of trace) console.log(line)
  console.log(broken.length === 0 ? 'No promise is broken.' : `${broken.join('\n')}\n${PROMISES}`)
  process.exitCode = broken.length === 0 ? 0 : 1
}

function print({ steps, faults, ...rest }: Plan, without: ReadonlySet<string>): void {
  console.log(JSON.stringify(rest, null, 2))
  for (const [index, step] of steps.entries())
    if (!without.has(`step:${index}`)) console.log(`step ${JSON.stringify(step)}`)
  for (const [index, fault] of faults.entries())
    if (!without.has(`fault:${index}`)) console.log(`fault ${JSON.stringify(fault)}`)
}

async function runMany(): Promise<void> {
  const built = await bundle()
  const onProgress = printProgress<Count>('npx node test/harness/simulation/run.ts')
  const summary = await runSeeds(built, { from, count, threads, onProgress }).finally(() => built.remove())
  if (summary.failures.length > 0) console.log(PROMISES)
  printSummary(summary, 'seeds', count)
}

if (seed === undefined) await runMany()
else await runOne(seed)
