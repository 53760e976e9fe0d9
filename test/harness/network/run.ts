/**
 * Runs the matrix the given number of times on every version. Prints one line for each failed cell
 * and version, and a count.
 */
import { positiveInteger, readArguments } from '../../../tools/programs/arguments.ts'
import { install } from '../../../tools/programs/install.ts'
import { nodeVersions } from '../../package/node-versions.ts'
import { runMatrix } from './matrix.ts'

const rounds = readArguments(
  {
    usage: `npx node test/harness/network/run.ts [ROUNDS]
  runs all cells on every version of Node that often (default 20)`,
    positionals: 1,
    options: {},
  },
  ({ positionals: [rounds = '20'] }) => positiveInteger('ROUNDS', rounds),
)
install('test/engines')
let cells = 0
let failed = 0
for (let round = 1; round <= rounds; round++) {
  for (const { version, results, unhandled } of await Promise.all(
    nodeVersions().map((each) => runMatrix(each)),
  )) {
    const bad = results.filter(({ problems }) => problems.length > 0)
    for (const { name, problems } of bad)
      console.log(`FAILED on Node ${version}: ${name}: ${problems.join('; ')}`)
    for (const error of unhandled) console.log(`FAILED on Node ${version}: nobody took ${error}`)
    cells += results.length
    failed += bad.length + unhandled.length
  }
  console.log(`round ${round}: ${cells} cells, ${failed} failed`)
}
console.log(`${cells} cells on Node ${nodeVersions().join(', ')}: ${failed} failed`)
process.exitCode = failed === 0 && cells > 0 ? 0 : 1
