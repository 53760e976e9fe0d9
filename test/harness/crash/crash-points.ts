/** Runs every crash point and every pair of mishaps as a program. `--help` prints the usage. */
import { readArguments } from '../../../tools/programs/arguments.ts'
import { enumerate, scenarios } from './scenarios.ts'

const crashesOnly = readArguments(
  {
    usage: `npx node test/harness/crash/crash-points.ts [--crashes-only]
  runs every pair of mishaps on every service
  --crashes-only: of the pairs those of two crashes, on half of the services, as CI does`,
    options: { 'crashes-only': { type: 'boolean', default: false } },
  },
  ({ values }) => values['crashes-only'],
)
let schedules = 0
let failed = 0
for (const scenario of scenarios(!crashesOnly)) {
  for await (const [schedule, { broken }] of enumerate(scenario, !crashesOnly)) {
    schedules++
    if (broken.length === 0) continue
    failed++
    console.log(`${scenario.name} ${JSON.stringify(schedule)}\n  ${broken.join('\n  ')}`)
  }
}
console.log(`${schedules} schedules, ${failed} with a broken promise`)
process.exitCode = failed === 0 && schedules > 0 ? 0 : 1
