// Races for rows of the servers with the ports given: inserts each row that the parent names, and then replaces its
// first version, until both are settled, whatever happens to the servers. Tells the parent each race that it won, and
// when it is done. The parent may kill it at any time; no rows at all end it.
import type { StoredRow } from '../../../../src/idempotency/store.ts'
import { makeRow, nextVersion } from '../../../../src/stores/contract/rows.ts'
import { RedisStore } from '../../../../src/stores/redis.ts'
import { connect } from '../../support/redis-clients.ts'

const [ports = '', prefix = '', name = ''] = process.argv.slice(2)
// Half of the fleet uses the one client, half the other.
const library = Number(name.slice(-1)) % 2 === 0 ? 'ioredis' : 'node-redis'
const connection = await connect(library, ports.split(',').map(Number))
const store = new RedisStore({ client: connection.client, prefix })

/** Calls until there is an answer. */
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
  write: () => Promise<boolean>,
  isMine: (row: StoredRow | undefined) => boolean | undefined,
  id: string,
): Promise<boolean> {
  const { scope } = makeRow(0)
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
    async () => (await store.insert(row)).inserted,
    // The data begins with who inserted the row, whoever replaced it.
    (found) => found && found.data.split(' ')[0] === name,
    row.id,
  )
  if (inserted) process.send?.({ race: `insert ${number}` })
  const first = await persistently(() => store.get(row.scope, row.id))
  if (first === undefined) throw new Error('the row is gone')
  if (first.version > 1) return
  const next = nextVersion(first, { data: `${first.data} ${name}`, open: false, state: 'created' })
  const updated = await settle(
    () => store.update(next, 1),
    (found) => (found?.version === 1 ? undefined : found?.data === next.data),
    row.id,
  )
  if (updated) process.send?.({ race: `update ${number}` })
}

process.on('message', async (numbers: readonly number[]) => {
  await Promise.all(numbers.map(race))
  if (numbers.length === 0) connection.close()
  process.send?.('done', () => {
    if (numbers.length === 0) process.disconnect()
  })
})
process.send?.('done')
