/** The model as a program; `--help` tells how it is called. */
import { positiveInteger, readArguments } from '../../../scripts/arguments.ts'
import { checkInterleavings, checkModel } from './checks.ts'

/** Runs of one seed of fast-check. */
const RUNS_OF_A_SEED = 500

const { runs, from } = readArguments(
  {
    usage: `npx node test/harness/model/run.ts [RUNS] [--from SEED]
  makes at least that many runs of commands one after the other, and as many of calls side by side (default 200,000);
  each ${RUNS_OF_A_SEED} of them have a seed of their own, and a failing run is printed, made short`,
    positionals: 1,
    options: { from: { type: 'string', default: '1' } },
  },
  ({ values, positionals: [runs = '200_000'] }) => ({
    runs: positiveInteger('RUNS', runs),
    from: positiveInteger('--from', values.from),
  }),
)
const CHECKS = [
  ['one after the other', checkModel],
  ['side by side', checkInterleavings],
] as const
const seeds = Math.ceil(runs / RUNS_OF_A_SEED)
let failed = 0
let lastLine = performance.now()
for (let seed = from; seed < from + seeds; seed++) {
  for (const [how, check] of CHECKS) {
    const report = await check(RUNS_OF_A_SEED, seed)
    if (report === undefined) continue
    failed++
    console.log(`seed ${seed}, ${how}: ${report}`)
  }
  if (performance.now() - lastLine < 10_000) continue
  lastLine = performance.now()
  console.log(`${(seed - from + 1) * RUNS_OF_A_SEED} runs of each, ${failed} seeds with something wrong`)
}
console.log(
  `seeds ${from} to ${from + seeds - 1}: ${seeds * RUNS_OF_A_SEED} runs one after the other and as many side by side, ` +
    `${failed} seeds with something wrong`,
)
process.exitCode = failed === 0 ? 0 : 1
