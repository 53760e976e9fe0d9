/** Searches every order of effects as a program. `--help` prints the usage. */
import { positiveInteger, readArguments } from '../../../tools/programs/arguments.ts'
import { CRASH_POINTS } from './crash-points.ts'
import { searched } from './schedules.ts'
import { SETTINGS, WIDE } from './settings.ts'

const most = readArguments(
  {
    usage: `npx node test/harness/model/run.ts [ORDERS]
  runs concurrent calls, and one call and its recovery on many services, in every order of their effects with every
  pair of mishaps, up to that many orders of each setting (default 200,000)`,
    positionals: 1,
    options: {},
  },
  ({ positionals: [orders = '200_000'] }) => positiveInteger('ORDERS', orders),
)

let failed = 0
let walked = 0
const settings = [...[...SETTINGS, ...CRASH_POINTS].map((each) => ({ ...each, mishaps: 2 })), ...WIDE]
for (const setting of settings) {
  const { runs, whole, broken } = await searched(setting, most)
  walked += runs
  console.log(`${setting.name}: ${runs} runs${whole ? ', every order' : ''}`)
  if (broken === undefined) continue
  failed++
  console.log(broken)
}
console.log(`${settings.length} settings, ${walked} runs, ${failed} settings with a broken promise`)
process.exitCode = failed === 0 ? 0 : 1
