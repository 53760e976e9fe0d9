/** Checks of every store in an SQL server. */
import { inspect } from 'node:util'
import { expect, it } from 'vitest'
import type { ServerStore } from '../../../src/stores/sql/server.ts'
import { expectHistoryThrough } from './disaster.ts'
import { expectFailure } from './failures.ts'
import type { SqlServer } from './sql-server.ts'

/** @param open opens a store with a pool of its own, at the address of the test or at this one */
export function behavesAsServerStore(
  server: () => SqlServer,
  open: (url?: string) => ServerStore,
  disasters: readonly ('restart' | 'crash')[],
): void {
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
}
