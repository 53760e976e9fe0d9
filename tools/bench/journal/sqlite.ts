/**
 * Time of `create()` with a `SqliteStore` and without a network, compared with two separately
 * synced inserts of the same size into the same kind of database on the same disk. Any client needs
 * two such writes if it writes before it sends and after the response.
 *
 * node tools/bench/journal/sqlite.ts [ROUNDS [FOLDER]]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { CustomerOrderingClient } from '../../../src/client.ts'
import { SqliteStore } from '../../../src/stores/sqlite.ts'
import { positiveInteger, readArguments } from '../../programs/arguments.ts'
import { instantFetch, nextRequest } from './instant.ts'
import { median } from './median.ts'

const { ROUNDS, parent } = readArguments(
  {
    usage: `npx node tools/bench/journal/sqlite.ts [ROUNDS] [FOLDER]
  that many rounds (default 40) on the disk of a folder (default: the one for temporary files)`,
    positionals: 2,
    options: {},
  },
  ({ positionals: [rounds = '40', parent = tmpdir()] }) => ({
    ROUNDS: positiveInteger('ROUNDS', rounds),
    parent,
  }),
)
const ORDERS = 25
const WARM_UP = 3
/** About the size of a record. */
const TEXT = 'x'.repeat(900)

const folder = mkdtempSync(join(parent, 'bench-sqlite-'))
const bare = new DatabaseSync(join(folder, 'bare.db'))
bare.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON')
bare.exec('CREATE TABLE rows (id TEXT PRIMARY KEY, data TEXT NOT NULL) STRICT')
const insert = bare.prepare('INSERT INTO rows (id, data) VALUES (?, ?)')
const store = new SqliteStore({ path: join(folder, 'orders.db') })
const client = new CustomerOrderingClient({
  baseUrl: 'https://bench.example.com',
  apiKey: 'sk_bench',
  account: 'bench',
  fetch: instantFetch,
  store,
})

let rows = 0

/** Milliseconds of two synced inserts. */
function inserts(): number {
  const before = performance.now()
  for (let order = 0; order < ORDERS; order++)
    for (let write = 0; write < 2; write++) insert.run(`row-${++rows}`, TEXT)
  return (performance.now() - before) / ORDERS
}

/** Milliseconds of one order. */
async function orders(): Promise<number> {
  const before = performance.now()
  for (let order = 0; order < ORDERS; order++) await client.orders.create(nextRequest())
  return (performance.now() - before) / ORDERS
}

const bareTimes: number[] = []
const orderTimes: number[] = []
const ratios: number[] = []
for (let round = -WARM_UP; round < ROUNDS; round++) {
  const first = round % 2 === 0 ? inserts() : undefined
  const order = await orders()
  const two = first ?? inserts()
  if (round < 0) continue
  bareTimes.push(two)
  orderTimes.push(order)
  ratios.push(order / two)
}
console.log(`two bare synced inserts  ${median(bareTimes).toFixed(3)} ms`)
console.log(`create(), SqliteStore    ${median(orderTimes).toFixed(3)} ms`)
console.log(
  `ratio                    ${median(ratios).toFixed(2)} (median of ${ROUNDS} pairs of ${ORDERS} orders)`,
)
await client.close()
bare.close()
rmSync(folder, { recursive: true })
