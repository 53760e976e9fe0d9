// Races for rows of a server: inserts each row that the parent names, and then replaces its first version, until both
// are settled, whatever happens to the server. Tells the parent each race that it won, and when it is done. The parent
// may kill it at any time; no rows at all end it.

import { makeRow, nextVersion } from '../../../src/stores/contract/rows.ts'
import { PostgresStore } from '../../../src/stores/postgres.ts'
import { RedisStore } from '../../../src/stores/redis.ts'
import type { OrderStore, StoredRow } from '../../../src/stores/store.ts'
import { makePool } from '../support/postgres-clients.ts'
import { connect } from '../support/redis-clients.ts'

const [name = '', engine = '', address = '', prefix = ''] = process.argv.slice(2)
const { store, end } = engine === 'postgres' ? await openPostgres() : await openRedis()

interface Opened {
  readonly store: OrderStore
  readonly end: () => unknown
}

async function openPostgres(): Promise<Opened> {
  const pool = makePool(address, { max: 4, connectionTimeoutMillis: 5_000 })
  const opened = new PostgresStore({ client: pool })
  await persistently(() => opened.migrate())
  return { store: opened, end: () => pool.end() }
}

async function openRedis(): Promise<Opened> {
  // Half of the fleet uses the one client, half the other.
  const library = Number(name.slice(-1)) % 2 === 0 ? 'ioredis' : 'node-redis'
  const { client, close } = await connect(library, address.split(',').map(Number))
  return { store: new RedisStore({ client, prefix }), end: close }
}

/** Calls until there is a response. */
async function persistently<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call()
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 5 + Math.random() * 20))
    }
  }
}

/** Writes, and looks after every failure whether the write was applied, as the journal does. */
async function settle(
  { scope, id }: StoredRow,
  write: () => Promise<boolean>,
  isMine: (row: StoredRow | undefined) => boolean | undefined,
): Promise<boolean> {
  for (;;) {
    try {
      return await write()
    } catch {
      const mine = isMine(await persistently(() => store.get(scope, id)))
      if (mine !== undefined) return mine
    }
  }
}

async function race(number: number): Promise<void> {
  const row = makeRow(number, { data: name })
  const inserted = await settle(
    row,
    async () => (await store.insert(row)).inserted,
    // The data begins with who inserted the row, whoever replaced it.
    (found) => found && found.data.split(' ')[0] === name,
  )
  if (inserted) process.send?.({ race: `insert ${number}` })
  const first = await persistently(() => store.get(row.scope, row.id))
  if (first === undefined) throw new Error('the row is gone')
  if (first.version > 1) return
  const next = nextVersion(first, { data: `${first.data} ${name}`, open: false, state: 'created' })
  const updated = await settle(
    row,
    () => store.update(next, 1),
    (found) => (found?.version === 1 ? undefined : found?.data === next.data),
  )
  if (updated) process.send?.({ race: `update ${number}` })
}

process.on('message', async (numbers: readonly number[]) => {
  await Promise.all(numbers.map(race))
  if (numbers.length === 0) await end()
  process.send?.('done', () => {
    if (numbers.length === 0) process.disconnect()
  })
})
process.send?.('done')
