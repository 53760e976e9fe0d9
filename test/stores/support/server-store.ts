/** Checks of every store in an SQL server. */
import { inspect } from 'node:util'
import { expect, it } from 'vitest'
import { makeRow, nextVersion, SCOPE } from '../../../src/stores/contract/rows.ts'
import type { ServerStore } from '../../../src/stores/sql/server.ts'
import { expectHistoryThrough } from './disaster.ts'
import { expectFailure } from './failures.ts'
import type { SqlServer } from './sql-server.ts'

interface Asked {
  query(sql: string): Promise<unknown>
}

interface ServerEngine<Client> {
  readonly server: () => SqlServer
  /** Opens a pool that ends after the test, at the address of the test or at this one. */
  readonly openPool: (options?: object, url?: string) => Client
  readonly over: (client: Client, options?: { readonly table: string }) => ServerStore
  /** Clients of each kind, which the test ends. */
  readonly openClosable: () => Promise<readonly (Client & { end(): Promise<unknown> })[]>
  /** What is no client, and what the error says that a client is. */
  readonly wrong: readonly [example: object, needs: string]
  readonly disasters: readonly ('restart' | 'crash')[]
  /** The options of a pool with one connection. */
  readonly one: object
  /** A connection with a transaction that has locked the rows. */
  readonly lock: () => Promise<Asked>
  /** Ends the connection of the write that waits for the lock. */
  readonly kill: () => Promise<unknown>
  /** The codes of a wrong login, of a missing database, and of a connection that the server ended. */
  readonly codes: readonly [login: string, missing: string, ended: string]
  /** Limits the time of a statement, by the options of its pool or by a statement. */
  readonly limits: readonly (readonly [name: string, limit: object | string, code: string, text: string])[]
  /** A query for the number of its own connection. */
  readonly session: string
}

export function behavesAsServerStore<Client extends Asked>(engine: ServerEngine<Client>): void {
  const { server, openPool, over, openClosable, disasters, one, lock, kill, limits, session } = engine
  const [login, missing, ended] = engine.codes
  const [example, needs] = engine.wrong
  const open = (url?: string) => over(openPool({}, url))
  const update = (store: ServerStore) => store.update(nextVersion(makeRow(1)), 1)

  it.each([
    ['user', { user: 'nobody' }, login, 'the login failed'],
    ['password', { password: 'wrong-secret' }, login, 'the login failed'],
    ['database', { database: 'missing' }, missing, 'the database does not exist'],
    ['port', { port: '1' }, 'ECONNREFUSED', 'the connection failed, or the server ended it'],
  ])('the error names a wrong %s, and nothing of the connection string', async (_, change, code, text) => {
    const error = await expectFailure(() => open(server().urlFor(change)).migrate(), text, code)
    const { password, host } = new URL(server().url)
    const shown = `${inspect(error, { depth: 9, showHidden: true })} ${JSON.stringify(error)}`
    for (const secret of [password, host, 'wrong-secret', 'nobody', '127.0.0.1'])
      if (secret !== '') expect(shown).not.toContain(secret)
  })

  it.each([undefined, null, {}, 'mysql://localhost', example])('it rejects the client %j', async (client) => {
    // A caller without a type checker may pass anything.
    await expectFailure(() => over(client as Client), needs)
  })

  it('a call rejects after the owner, not the store, has closed the client', async () => {
    for (const client of await openClosable()) {
      const store = over(client)
      await store.migrate()
      await over(client).close()
      await client.query('SELECT 1')
      await client.end()
      const reason = 'the client that you passed was closed'
      await expectFailure(() => store.get(SCOPE, 'id'), reason, 'CLIENT_CLOSED')
    }
  })

  it('stores that create their tables at the same time create them once', async () => {
    const pools = Array.from({ length: 6 }, () => openPool(one))
    for (let round = 0; round < 15; round++) {
      const stores = pools.map((pool) => over(pool, { table: `rows_${round}` }))
      const results = await Promise.all(stores.map((store) => store.insert(makeRow(1))))
      expect(results.filter(({ inserted }) => inserted)).toHaveLength(1)
    }
  })

  it.each(disasters)('through a %s, histories are linearizable, and the store writes', async (disaster) => {
    const store = open()
    await expectHistoryThrough(() => server()[disaster](), store, open())
    expect(await store.insert(makeRow(1, { scope: 'later' }))).toEqual({ inserted: true })
  })

  it('a write whose connection the server ends is in doubt, and the next call gets a new connection', async () => {
    const store = over(openPool(one))
    await store.insert(makeRow(1))
    const locker = await lock()
    const reason = /the server ended it\. .*The write may or may not have happened/
    const failed = expectFailure(() => update(store), reason, ended)
    await kill()
    expect((await failed).applied).toBeUndefined()
    await locker.query('ROLLBACK')
    expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
    expect(await update(store)).toBe(true)
  })

  it.each(limits)('a write beyond %s rejects, and its connection is usable', async (_, limit, code, text) => {
    const pool = openPool(typeof limit === 'string' ? one : { ...one, ...limit })
    if (typeof limit === 'string') await pool.query(limit)
    const store = over(pool)
    await store.insert(makeRow(1))
    const before = JSON.stringify(await pool.query(session))
    const locker = await lock()
    const error = await expectFailure(() => update(store), `${text} Nothing was written.`, code)
    expect(error.applied).toBe(false)
    expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
    await locker.query('ROLLBACK')
    expect(await update(store)).toBe(true)
    expect(JSON.stringify(await pool.query(session))).toBe(before)
  })
}
