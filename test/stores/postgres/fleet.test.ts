import { explainHistory, recordHistory } from 'customer-ordering-sdk/stores/contract'
import { PostgresStore } from 'customer-ordering-sdk/stores/postgres'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { OrderStore } from '../../../src/stores/store.ts'
import { describeWith, HOOK_TIMEOUT, PostgresServer } from '../support/postgres.ts'
import { execute, makePool } from '../support/postgres-clients.ts'
import { expectOneWinner, race } from '../support/race.ts'

const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds))

describeWith('server', 'PostgresStore and a fleet of processes', () => {
  let server: PostgresServer | undefined

  beforeAll(async () => {
    server = await PostgresServer.start()
  }, HOOK_TIMEOUT)
  afterAll(() => server?.stop(), HOOK_TIMEOUT)

  it.each(['restart', 'crash'] as const)(
    'that race for 200 rows, are killed, and live through a %s of the server: each row has one winner',
    async (disaster) => {
      if (server === undefined) throw new Error('not started')
      const database = `fleet_${disaster}`
      const url = server.urlFor({ database })
      await execute(server.url, `CREATE DATABASE ${database}`)
      const seen = await race(['postgres', url], async () => server?.[disaster]())
      const pool = makePool(url)
      await expectOneWinner(seen, new PostgresStore({ client: pool })).finally(() => pool.end())
    },
  )

  it.each(['restart', 'crash'] as const)(
    'that read and write through a %s of the server: an order of all calls explains what each saw',
    async (disaster) => {
      if (server === undefined) throw new Error('not started')
      const database = `history_${disaster}`
      const url = server.urlFor({ database })
      await execute(server.url, `CREATE DATABASE ${database}`)
      const pools = [makePool(url), makePool(url)]
      const stores = pools.map((client) => patient(new PostgresStore({ client })))
      await stores[0]?.get('scope', 'id')
      const recording = recordHistory(stores, { seed: 7, operations: 600 })
      const disasters = (async () => {
        for (let count = 0; count < 2; count++) {
          await pause(100)
          await server?.[disaster]()
        }
      })()
      const { calls, failures } = await recording
      await disasters
      expect(failures.length).toBeGreaterThan(0)
      expect(calls.filter((call) => 'updated' in call && call.updated === true).length).toBeGreaterThan(50)
      expect(explainHistory(calls)).toBeUndefined()
      for (const pool of pools) await pool.end()
    },
  )
})

/**
 * The store, but a call that fails is over only when the server is back. Else the clients would fail all their calls
 * meanwhile, and each of those may or may not have been applied: too many possibilities to go through.
 */
function patient(store: OrderStore): OrderStore {
  const slowly = async <T>(call: Promise<T>): Promise<T> => {
    try {
      return await call
    } catch (error) {
      for (let back = false; !back; ) {
        await pause(10)
        back = await store.get('scope', 'id').then(
          () => true,
          () => false,
        )
      }
      throw error
    }
  }
  return {
    durability: store.durability,
    get: (scope, id) => slowly(store.get(scope, id)),
    insert: (row) => slowly(store.insert(row)),
    update: (row, expectedVersion) => slowly(store.update(row, expectedVersion)),
    listOpen: (scope, options) => slowly(store.listOpen(scope, options)),
    list: (scope, options) => slowly(store.list(scope, options)),
    prune: (scope, options) => slowly(store.prune(scope, options)),
    close: () => store.close(),
  }
}
