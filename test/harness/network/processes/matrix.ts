/** Runs every cell on this process's Node, and prints the results as JSON. */
import { CELLS, type Cell } from '../faults.ts'
import { type CellResult, runCell } from '../run-cell.ts'

const AT_ONCE = 8
/** Time limit of one cell in milliseconds. The slowest takes ten seconds. */
const LONGEST = 120_000

const unhandled: string[] = []
process.on('unhandledRejection', (error) => unhandled.push(String(error)))
// Start the slowest cells first, because they wait for the system.
const waiting = CELLS.toSorted(
  (a, b) => Number(b.fault.elsewhere === 'full backlog') - Number(a.fault.elsewhere === 'full backlog'),
)
const results: CellResult[] = []
/** A cell that hangs fails with its name. */
const late = ({ name }: Cell): Promise<CellResult> =>
  new Promise((resolve) => {
    const problems = [`did not end within ${LONGEST} ms`]
    setTimeout(() => resolve({ name, problems }), LONGEST).unref()
  })
const work = async (): Promise<void> => {
  for (let cell = waiting.shift(); cell !== undefined; cell = waiting.shift())
    results.push(await Promise.race([runCell(cell), late(cell)]))
}
await Promise.all(Array.from({ length: AT_ONCE }, work))
process.stdout.write(JSON.stringify({ version: process.versions.node, results, unhandled }), () =>
  process.exit(),
)
