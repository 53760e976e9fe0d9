/** Runs the model as a program. `--help` prints the usage. */
import { positiveInteger, readArguments } from '../../../scripts/arguments.ts'
import { progressPrinter } from '../../support/seeds.ts'
import { ENTRIES, NEIGHBOURS, noticed, unused } from './coverage.ts'
import { checkModel } from './orders-model.ts'
import { search } from './search.ts'
import { SETTINGS } from './settings.ts'

const RUNS_OF_A_SEED = 500

const { runs, from, states } = readArguments(
  {
    usage: `npx node test/harness/model/run.ts [RUNS] [--from SEED] [--states COUNT]
  walks through every state of each setting, up to COUNT of one (default 400,000), and from there through those to which
  each wrong neighbour of a rule leads, and prints what notices it; then makes at least RUNS runs of the public API against
  a model (default 200,000), each ${RUNS_OF_A_SEED} with a seed of their own, and prints a failing one, made short`,
    positionals: 1,
    options: { from: { type: 'string', default: '1' }, states: { type: 'string', default: '400_000' } },
  },
  ({ values, positionals: [given = '200_000'] }) => ({
    runs: positiveInteger('RUNS', given),
    from: positiveInteger('--from', values.from),
    states: positiveInteger('--states', values.states),
  }),
)

let failed = 0
let walked = 0
const small = SETTINGS.filter(({ wide }) => wide !== true)
const searches = small.map((setting) => report(setting))
// Run one at a time: a wide setting needs up to a gigabyte.
for (const setting of SETTINGS) if (setting.wide === true) report(setting)
console.log(`${SETTINGS.length} settings, ${walked} states`)

for (const name of unused(searches)) console.log(`no state uses ${name}`)
let promises = 0
for (const neighbour of NEIGHBOURS) {
  const { promise, line } = noticed(neighbour, searches, states)
  if (promise !== undefined) promises++
  if (line === undefined) failed++
  console.log(
    `${neighbour.name}: ${promise ?? (line === undefined ? 'NOTHING NOTICES IT' : 'a line of the table')}`,
  )
}
console.log(
  `${ENTRIES.length} entries, ${NEIGHBOURS.length} wrong neighbours: ${promises} break a promise, ${failed} are not noticed`,
)

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
  `${walked} states; seeds ${from} to ${from + seeds - 1}, ${seeds * RUNS_OF_A_SEED} runs; ${failed} with something wrong`,
)
process.exitCode = failed === 0 ? 0 : 1

function report(setting: (typeof SETTINGS)[number]) {
  const found = search(setting, states)
  walked += found.states
  console.log(`${setting.name}: ${found.states} states${found.whole ? ', all there are' : ''}`)
  if (found.broken !== undefined) {
    failed++
    console.log(found.broken)
  }
  return found
}
