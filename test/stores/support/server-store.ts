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

interface ServerEngine<Pool> {
  readonly server: () => SqlServer
  /** Opens a pool that ends after the test, at the address of the test or at this one. */
  readonly openPool: (options?: object, url?: string) => Pool
  readonly over: (pool: Pool) => ServerStore
  readonly disasters: readonly ('restart' | 'crash')[]
  /** The options of a pool with one connection. */
  readonly one: object
  /** A connection with a transaction that has locked the rows. */
  readonly lock: () => Promise<Asked>
  /** Ends the connection of the write that waits for the lock. */
  readonly kill: () => Promise<unknown>
  /** Limits the time of a statement, by the options of its pool or by a statement. */
  readonly limits: readonly (readonly [name: string, limit: object | string, code: string, text: string])[]
  /** A query for the number of its own connection. */
  readonly session: string
}

export function behavesAsServerStore<Pool extends Asked>(engine: ServerEngine<Pool>): void {
  const { server, openPool, over, disasters, one, lock, kill, limits, session } = engine
  const open = (url?: string) => over(openPool({}, url))
  const update = (store: ServerStore) => store.update(nextVersion(makeRow(1)), 1)

  it.each([
    ['user', { user: 'nobody' }, 'the login failed'],
    ['password', { password: 'wrong-secret' }, 'the login failed'],
    ['database', { database: 'missing' }, 'the database does not exist'],
    ['port', { port: '1' }, 'the connection failed, or the server ended it'],
  ])('the error names a wrong %s, and nothing of the connection string', async (_, change, text) => {
    const error = await expectFailure(() => open(server().urlFor(change)).migrate(), text)
    const { password, host } = new URL(server().url)
    const shown = `${inspect(error, { depth: 9, showHidden: true })} ${JSON.stringify(error)}`
    for (const secret of [password, host, 'wrong-secret', 'nobody', '127.0.0.1'])
      if (secret !== '') expect(shown).not.toContain(secret)
  })

  it.each(disasters)('after a %s of the server, the history of all clients is linearizable', (disaster) =>
    expectHistoryThrough(() => server()[disaster](), open(), open()),
  )

  it('a write whose connection the server ends is in doubt, and the next call gets a new connection', async () => {
    const store = over(openPool(one))
    await store.insert(makeRow(1))
    const locker = await lock()
    const reason = /the server ended it\. .*The write may or may not have happened/
    const failed = expectFailure(() => update(store), reason)
    await kill()
    expect((await failed).applied).toBeUndefined()
    await locker.query('ROLLBACK')
    expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
    expect(await update(store)).toBe(true)
  })

  it.each(limits)(
    'a write rejects if it exceeds %s, and the connection stays usable',
    async (_, limit, code, text) => {
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
    },
  )
}
