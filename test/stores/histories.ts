/** Records concurrent histories of every store repeatedly. `--help` prints the usage. */

import { recordHistory } from '../../src/stores/contract/history.ts'
import { explainHistory } from '../../src/stores/contract/linearizability.ts'
import { oneOf, positiveInteger, readArguments } from '../../tools/programs/arguments.ts'
import { type OpenStore, openStore, STORE_NAMES } from '../harness/fleet/open-store.ts'
import { startSharedStore } from '../harness/fleet/shared-store.ts'

const { which, count, from } = readArguments(
  {
    usage: `npx node test/stores/histories.ts [STORE|all] [HISTORIES] [FIRST_SEED]
  records that many histories (default 1,000) of 8 clients with 200 calls each over ${STORE_NAMES.join(', ')} or all of them (default),
  from that seed on (default 1), and looks for an order of the calls that explains each`,
    positionals: 3,
    options: {},
  },
  ({ positionals: [which = 'all', count = '1_000', from = '1'] }) => ({
    which: oneOf('STORE', which, [...STORE_NAMES, 'all']),
    count: positiveInteger('HISTORIES', count),
    from: positiveInteger('FIRST_SEED', from),
  }),
)

let made = 0
let failed = 0
/** Records a history over two handles, and prints why no order of its calls explains it, if so. */
async function record(name: string, seed: number, handles: readonly OpenStore[]): Promise<void> {
  try {
    const { calls, failures } = await recordHistory(
      handles.map(({ store }) => store),
      { seed },
    )
    made += calls.length
    const problem =
      failures.length > 0
        ? `${failures.length} calls were rejected, the first with ${failures[0]}`
        : explainHistory(calls)
    if (problem === undefined) return
    failed++
    console.log(`${name}, seed ${seed}: ${problem}\n  npx node test/stores/histories.ts ${name} 1 ${seed}`)
  } finally {
    for (const handle of handles) await handle.close()
  }
}

const names = STORE_NAMES.filter((name) => which === 'all' || which === name)
for (const name of names) {
  const begin = performance.now()
  const shared = await startSharedStore(name)
  try {
    for (let seed = from; seed < from + count; seed++) {
      const open = (process: number) => openStore(shared.address(`history_${seed}`, process))
      await record(name, seed, await Promise.all([open(0), open(1)]))
    }
  } finally {
    await shared.stop()
  }
  console.log(`${name}: ${count} histories in ${((performance.now() - begin) / 1000).toFixed(0)} s`)
}
console.log(
  `${names.join(', ')}: ${count} histories each, ${made} calls, ${failed} histories that no order of the calls explains`,
)
process.exitCode = failed === 0 && made > 0 ? 0 : 1
