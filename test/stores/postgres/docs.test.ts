import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { CustomerOrderingClient } from 'customer-ordering-sdk'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import {
  type PostgresClient,
  type PostgresParameter,
  PostgresStore,
} from 'customer-ordering-sdk/stores/postgres'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { serveSandbox } from '../../../src/sandbox/http/server.ts'
import { makeRow, SCOPE } from '../../../src/stores/contract/rows.ts'
import { blocksOf, readPages } from '../../docs/support/pages.ts'
import { embedded } from '../support/during.ts'
import { HOOK_TIMEOUT } from '../support/postgres.ts'
import { describeWith } from '../support/services.ts'

const folder = fileURLToPath(new URL('../../../.tmp/postgres-docs/', import.meta.url))

/** The names and parameters of the page's functions. */
interface Page {
  openClient(pool: PostgresClient): CustomerOrderingClient
  adapt(sql: {
    unsafe(text: string, parameters?: PostgresParameter[]): Promise<readonly unknown[]>
  }): PostgresClient
  openShop(pool: PostgresClient): Promise<{
    checkOut(connection: PostgresClient, id: string, target: string): Promise<void>
    sendEnqueued(): Promise<void>
  }>
}

describeWith('clients', 'what the documentation shows of PostgresStore', () => {
  const database = embedded()
  const shown: Partial<Page> = {}

  beforeAll(async () => {
    const blocks = readPages()
      .flatMap(blocksOf)
      .filter(
        ({ at, info, code }) =>
          /^docs\/(?!guide\/orms)/.test(at) && info === 'ts' && code.includes('/stores/postgres'),
      )
    await mkdir(folder, { recursive: true })
    for (const [index, { code }] of blocks.entries()) {
      const file = join(folder, `block-${index}.ts`)
      await writeFile(file, code)
      Object.assign(shown, await import(file))
    }
  }, HOOK_TIMEOUT)
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it('the documented Postgres code works', async () => {
    const { openClient, adapt, openShop } = shown
    if (!openClient || !adapt || !openShop) throw new Error('a block is missing')
    const pglite = database()
    const client = openClient(pglite)
    for await (const record of client.orders.unresolved()) throw new Error(`it has ${record.slot}`)
    const store = new PostgresStore({
      client: adapt({ unsafe: async (text, parameters) => (await pglite.query(text, parameters)).rows }),
    })
    expect(await store.insert(makeRow(1))).toEqual({ inserted: true })
    expect((await store.listOpen(SCOPE, { limit: 5 })).rows).toEqual([makeRow(1)])

    const sandbox = createSandbox()
    const server = await serveSandbox(sandbox)
    vi.stubEnv('CUSTOMER_ORDERING_BASE_URL', server.url)
    vi.stubEnv('CUSTOMER_ORDERING_API_KEY', sandbox.apiKey)
    try {
      await pglite.exec(
        'CREATE TABLE checkouts (id text PRIMARY KEY, target text, state text, order_id text)',
      )
      const { checkOut, sendEnqueued } = await openShop(pglite)
      await checkOut(pglite, 'checkout-1', '@ada')
      await expect(checkOut(pglite, 'checkout-1', '@bob')).rejects.toThrow(/duplicate key/)
      await pglite.exec("DELETE FROM checkouts; INSERT INTO checkouts VALUES ('checkout-1', '@ada')")
      await expect(checkOut(pglite, 'checkout-2', ' ')).rejects.toMatchObject({ code: 'invalid_request' })
      expect(sandbox.requests).toEqual([])
      await sendEnqueued()
      const { orderId } = sandbox.expectChargedOnce('checkout-1')
      expect((await pglite.query('SELECT id, state, order_id FROM checkouts')).rows).toEqual([
        { id: 'checkout-1', state: 'created', order_id: orderId },
      ])
    } finally {
      vi.unstubAllEnvs()
      await server.close()
    }
  })
})
