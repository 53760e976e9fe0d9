/**
 * Time of `create()` without a network, with 1,000 and with 1,000,000 closed records in the store.
 * Old records must not slow a call down.
 *
 * node tools/bench/journal/growth.ts [ROUNDS [RECORDS]]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { CustomerOrderingClient } from '../../../src/client.ts'
import { scopeOf } from '../../../src/identity/keys.ts'
import { normalizeServer } from '../../../src/identity/server.ts'
import { platformRuntime } from '../../../src/runtime.ts'
import { MemoryStore } from '../../../src/stores/memory.ts'
import { SqliteStore } from '../../../src/stores/sqlite.ts'
import type { OrderStore, StoredRow } from '../../../src/stores/store.ts'
import { positiveInteger, readArguments } from '../../programs/arguments.ts'
import { instantFetch, nextRequest } from './instant.ts'
import { median } from './median.ts'

const [ROUNDS, MANY] = readArguments(
  {
    usage: `npx node tools/bench/journal/growth.ts [ROUNDS] [RECORDS]
  that many rounds (default 60) over that many records (default 1,000,000)`,
    positionals: 2,
    options: {},
  },
  ({ positionals: [rounds = '60', records = '1_000_000'] }) =>
    [positiveInteger('ROUNDS', rounds), positiveInteger('RECORDS', records)] as const,
)
const FEW = 1000
const ORDERS = 50
const WARM_UP = 6

const BASE_URL = 'https://bench.example.com'
const ACCOUNT = 'bench'
const folder = mkdtempSync(join(tmpdir(), 'bench-growth-'))

/** Rows like those of created orders, with random ids. */
async function* closedRows(count: number): AsyncGenerator<StoredRow> {
  const store = new MemoryStore()
  await clientOf(store).orders.create(nextRequest())
  const scope = scopeOf(normalizeServer(BASE_URL), ACCOUNT)
  const [row] = (await store.list(scope, { limit: 1 })).rows
  if (row === undefined) throw new Error('the order was not remembered')
  for (let index = 0; index < count; index++) {
    const id = platformRuntime.randomId()
    yield { ...row, id, updatedAt: row.updatedAt - index, data: row.data.replace('"ord_', `"ord_${index}_`) }
  }
}

function clientOf(store: OrderStore): CustomerOrderingClient {
  return new CustomerOrderingClient({
    baseUrl: BASE_URL,
    apiKey: 'sk_bench',
    account: ACCOUNT,
    fetch: instantFetch,
    store,
  })
}

async function memoryWith(count: number): Promise<OrderStore> {
  const store = new MemoryStore()
  for await (const row of closedRows(count)) await store.insert(row)
  return store
}

async function sqliteWith(count: number): Promise<OrderStore> {
  const path = join(folder, `${count}.db`)
  const store = new SqliteStore({ path })
  // A million synced inserts would take an hour.
  const database = new DatabaseSync(path)
  database.exec('PRAGMA synchronous = OFF; BEGIN')
  const insert = database.prepare(
    `INSERT INTO customer_ordering_rows (scope, id, version, open, state, created_at, updated_at, data)
     VALUES (?, ?, ?, 0, ?, ?, ?, ?)`,
  )
  for await (const { scope, id, version, state, createdAt, updatedAt, data } of closedRows(count))
    insert.run(scope, id, version, state, createdAt, updatedAt, data)
  database.exec('COMMIT; PRAGMA wal_checkpoint(TRUNCATE)')
  database.close()
  return store
}

/** Milliseconds of one order. */
async function timeOf(client: CustomerOrderingClient): Promise<number> {
  const before = performance.now()
  for (let order = 0; order < ORDERS; order++) await client.orders.create(nextRequest())
  return (performance.now() - before) / ORDERS
}

async function compare(name: string, open: (count: number) => Promise<OrderStore>): Promise<void> {
  const few = clientOf(await open(FEW))
  const many = clientOf(await open(MANY))
  const times = { few: [] as number[], many: [] as number[] }
  const ratios: number[] = []
  for (let round = -WARM_UP; round < ROUNDS; round++) {
    const first = round % 2 === 0 ? await timeOf(few) : undefined
    const large = await timeOf(many)
    const small = first ?? (await timeOf(few))
    if (round < 0) continue
    times.few.push(small)
    times.many.push(large)
    ratios.push(large / small)
  }
  const [small, large] = [median(times.few), median(times.many)]
  console.log(
    `${name}  ${small.toFixed(3)} ms with ${FEW} records, ${large.toFixed(3)} ms with ${MANY}, ratio ${median(ratios).toFixed(3)}`,
  )
  await few.close()
  await many.close()
}

await compare('MemoryStore', memoryWith)
await compare('SqliteStore', sqliteWith)
rmSync(folder, { recursive: true })
