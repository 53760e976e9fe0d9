/** Records concurrent histories of every store repeatedly. `--help` prints the usage. */

import { recordHistory } from '../../src/stores/contract/history.ts'
import { explainHistory } from '../../src/stores/contract/linearizability.ts'
import { MemoryStore } from '../../src/stores/memory.ts'
import { oneOf, positiveInteger, readArguments } from '../../tools/programs/arguments.ts'
import { type OpenStore, openStore, STORE_NAMES } from '../harness/fleet/open-store.ts'
import { startSharedStore } from '../harness/fleet/shared-store.ts'

const NAMES = ['memory', ...STORE_NAMES] as const
type Name = (typeof NAMES)[number]

/** Opens handles to a store without rows. */
type Opener = (seed: number) => Promise<readonly OpenStore[]>

const { which, count, from } = readArguments(
  {
    usage: `npx node test/stores/histories.ts [STORE|all] [HISTORIES] [FIRST_SEED]
  records that many histories (default 1,000) of 8 clients with 200 calls each over ${NAMES.join(', ')} or all of them (default),
  from that seed on (default 1), and looks for an order of the calls that explains each`,
    positionals: 3,
    options: {},
  },
  ({ positionals: [which = 'all', count = '1_000', from = '1'] }) => ({
    which: oneOf('STORE', which, [...NAMES, 'all']),
    count: positiveInteger('HISTORIES', count),
    from: positiveInteger('FIRST_SEED', from),
  }),
)

/** The error of one history, or undefined. */
async function problemOf(handles: readonly OpenStore[], seed: number): Promise<string | undefined> {
  const { calls, failures } = await recordHistory(
    handles.map(({ store }) => store),
    { seed },
  )
  made += calls.length
  if (failures.length > 0) return `${failures.length} calls were rejected, the first with ${failures[0]}`
  return explainHistory(calls)
}

async function runAll(name: Name, open: Opener): Promise<void> {
  const begin = performance.now()
  let bad = 0
  for (let seed = from; seed < from + count; seed++) {
    const handles = await open(seed)
    try {
      const problem = await problemOf(handles, seed)
      if (problem === undefined) continue
      bad++
      console.log(`${name}, seed ${seed}: ${problem}\n  npx node test/stores/histories.ts ${name} 1 ${seed}`)
    } finally {
      for (const handle of handles) await handle.close()
    }
  }
  failed += bad
  const seconds = ((performance.now() - begin) / 1000).toFixed(0)
  console.log(`${name}: ${count} histories in ${seconds} s, ${bad} of them cannot be explained`)
}

let made = 0
let failed = 0
const names = NAMES.filter((name) => which === 'all' || which === name)
for (const name of names) {
  if (name === 'memory') {
    const open: Opener = async () => [{ store: new MemoryStore(), close: async () => {} }]
    await runAll(name, open)
    continue
  }
  const shared = await startSharedStore(name)
  try {
    await runAll(name, (seed) =>
      Promise.all([0, 1].map((process) => openStore(shared.address(`history_${seed}`, process)))),
    )
  } finally {
    await shared.stop()
  }
}
console.log(
  `${names.join(', ')}: ${count} histories each, ${made} calls, ${failed} histories that no order of the calls explains`,
)
process.exitCode = failed === 0 && made > 0 ? 0 : 1
