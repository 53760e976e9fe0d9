import { beforeEach, describe, expect, it } from 'vitest'
import { serveSandbox } from '../../../src/sandbox/http/server.ts'
import { createSandbox, type Sandbox } from '../../../src/sandbox/index.ts'
import { makeRow, nextVersion, SCOPE } from '../../../src/stores/contract/rows.ts'
import type { OrderStore } from '../../../src/stores/store.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { during } from '../support/during.ts'
import { callsOf, expectFailure, expectFailures } from '../support/failures.ts'
import { describeWith } from '../support/services.ts'
import { behavesAsSqlStore } from '../support/sql-store.ts'
import type { Place, StoreKind } from './platform.ts'
import { Workerd } from './workerd.ts'

describeWith('clients', 'stores of Cloudflare Workers', () => {
  const folder = temporaryFolder('workerd')
  const running = during(
    async () => {
      const sandbox: Sandbox = createSandbox()
      const service = await serveSandbox(sandbox)
      const workerd = await Workerd.start({ folder, baseUrl: service.url, apiKey: sandbox.apiKey })
      return { workerd, sandbox, stop: () => Promise.all([workerd.kill(), service.close()]) }
    },
    ({ stop }) => stop(),
  )

  describe.each<[name: string, store: StoreKind, words: string]>([
    ['D1Store', 'd1', 'D1'],
    ['DurableObjectStore', 'object', 'the Durable Object'],
  ])('%s', (name, store, words) => {
    let tests = 0
    let handles = 0
    let used: OrderStore | undefined
    const place = (): Place => ({ store, name: `test-${tests}` })
    const open = (): OrderStore => {
      used = running().workerd.open(place(), `${store}-${++handles}`)
      return used
    }
    const query = async (sql: string): Promise<readonly Record<string, unknown>[]> => {
      let rows: unknown = []
      // One statement at a time: the platform has no BEGIN.
      for (const statement of sql.split(';').map((part) => part.trim()))
        if (statement !== '' && !/^(BEGIN|COMMIT)/.test(statement))
          rows = await running().workerd.perform(place(), { task: 'sql', sql: statement })
      return rows as readonly Record<string, unknown>[]
    }

    describe('on its engine', () => {
      beforeEach(async () => {
        tests++
        if (store === 'd1')
          for (const table of ['rows', 'orders', 'schema'])
            await query(`DROP TABLE IF EXISTS customer_ordering_${table}`)
      })

      behavesAsSqlStore({
        name,
        open,
        query,
        versions: 'customer_ordering_schema',
        dropIndex: 'DROP INDEX customer_ordering_open',
        schema: "SELECT name, sql FROM sqlite_schema WHERE tbl_name LIKE 'customer_ordering_%' ORDER BY name",
        dropped: `the order store in ${words}: `,
      })

      it('a table that lost its key is refused, so that no order is bought twice', async () => {
        await open().insert(makeRow(1))
        await query(
          'CREATE TABLE copy AS SELECT * FROM customer_ordering_rows; DROP TABLE customer_ordering_rows',
        )
        await query('ALTER TABLE copy RENAME TO customer_ordering_rows')
        await expectFailures(callsOf(open()), 'has lost its primary key')
      })

      it('a record that is larger than the database accepts is surely not written', async () => {
        const opened = open()
        await opened.insert(makeRow(1))
        const data = 'x'.repeat(2_300_000)
        const reason = 'the record is larger than the database accepts'
        for (const call of [
          () => opened.insert(makeRow(2, { data })),
          () => opened.update(nextVersion(makeRow(1), { data }), 1),
        ]) {
          const error = await expectFailure(call, reason, 'SQLITE_TOOBIG')
          expect(error.applied).toBe(false)
        }
        expect(await opened.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
      })
    })
  })

  describe('DurableObjectStore in a transaction of the application', () => {
    const place: Place = { store: 'object', name: 'transactions' }
    const roll = (how: 'sync' | 'async', reference: string) =>
      running().workerd.perform(place, { task: 'transaction', how, reference })

    it('a call inside storage.transaction() is refused before anything is sent', async () => {
      const sent = running().sandbox.requests.length
      await expect(roll('async', 'in-transaction')).rejects.toMatchObject({
        charged: 'no',
        message: expect.stringContaining('the call is inside storage.transaction()'),
      })
      expect(running().sandbox.requests.length).toBe(sent)
    })

    it.each([0, 1])('the setting of foreign keys stays %d', async (value) => {
      const sql = (text: string) => running().workerd.perform(place, { task: 'sql', sql: text })
      await sql(`PRAGMA foreign_keys = ${value}`)
      await running()
        .workerd.open(place, `keys-${value}`)
        .insert(makeRow(value + 1))
      expect(await sql('PRAGMA foreign_keys')).toEqual([{ foreign_keys: value }])
    })

    it('a call inside transactionSync() is remembered although that transaction is rolled back', async () => {
      expect(await roll('sync', 'in-transaction-sync')).toBe('placed')
      running().sandbox.expectChargedOnce('in-transaction-sync')
      await running()
        .workerd.perform(place, { task: 'abort' })
        .catch(() => {})
      const remembered = await running().workerd.perform(place, { task: 'remembered' })
      expect(remembered).toEqual([['in-transaction-sync', 'created', expect.any(String)]])
    })
  })
})
