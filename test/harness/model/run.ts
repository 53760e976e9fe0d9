/** Runs the model as a program. `--help` prints the usage. */
import { positiveInteger, readArguments } from '../../../tools/programs/arguments.ts'
import { progressPrinter } from '../../support/seeds.ts'
import { checkModel } from './orders-model.ts'
import { searched } from './schedules.ts'
import { SETTINGS, WIDE } from './settings.ts'

const RUNS_OF_A_SEED = 500

const { runs, from, orders } = readArguments(
  {
    usage: `npx node test/harness/model/run.ts [RUNS] [--from SEED] [--orders COUNT]
  runs concurrent calls in every order of their effects, with every pair of mishaps, up to COUNT of each setting (default
  200,000); then makes at least RUNS runs of the public API against a model (default 200,000), each ${RUNS_OF_A_SEED} with a seed of
  their own, and prints a failing one, made short`,
    positionals: 1,
    options: { from: { type: 'string', default: '1' }, orders: { type: 'string', default: '200_000' } },
  },
  ({ values, positionals: [given = '200_000'] }) => ({
    runs: positiveInteger('RUNS', given),
    from: positiveInteger('--from', values.from),
    orders: positiveInteger('--orders', values.orders),
  }),
)

let failed = 0
let walked = 0
const settings = [...SETTINGS.map((each) => ({ ...each, mishaps: 2 })), ...WIDE]
for (const setting of settings) {
  const found = await searched(setting, orders)
  walked += found.runs
  console.log(`${setting.name}: ${found.runs} runs${found.whole ? ', every order' : ''}`)
  if (found.broken === undefined) continue
  failed++
  console.log(found.broken)
}
console.log(`${settings.length} settings, ${walked} runs`)

const seeds = Math.ceil(runs / RUNS_OF_A_SEED)
const progress = progressPrinter()
for (let seed = from; seed < from + seeds; seed++) {
  const wrong = await checkModel(RUNS_OF_A_SEED, seed)
  if (wrong !== undefined) {
    failed++
    console.log(`seed ${seed}: ${wrong}`)
  }
  progress(() => `${(seed - from + 1) * RUNS_OF_A_SEED} runs, ${failed} with something wrong`)
}
console.log(
  `${walked} orders; seeds ${from} to ${from + seeds - 1}, ${seeds * RUNS_OF_A_SEED} runs; ${failed} with something wrong`,
)
process.exitCode = failed === 0 ? 0 : 1
