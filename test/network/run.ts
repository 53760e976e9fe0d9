/** Runs the matrix as often as told (default 20) on every version, one line a cell and version that failed, and a count. */
import { installOnce } from '../package/install-once.ts'
import { nodeVersions } from '../package/node-versions.ts'
import { runMatrix } from './matrix.ts'

const rounds = Number(process.argv[2] ?? 20)
const versions = await installOnce('versions')
let cells = 0
let failed = 0
for (let round = 1; round <= rounds; round++) {
  for (const { version, results, unhandled } of await Promise.all(
    nodeVersions().map((each) => runMatrix(each, versions)),
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
if (failed > 0) process.exitCode = 1
