/**
 * A page that places orders and may be killed at any moment. It reports each step to the test and
 * waits until the test has received it: a call before it begins, a write of the store when it is
 * acknowledged, and the result for the caller.
 */
import {
  CustomerOrderingClient,
  isCustomerOrderingError,
  MemoryStore,
  type OrderStore,
} from 'customer-ordering-sdk'
import { IndexedDbStore } from 'customer-ordering-sdk/stores/indexeddb'
import { walk } from '../../../src/stores/contract/rows.ts'
import type { StoredRow } from '../../../src/stores/store.ts'
import { type Recovered, recoveredOf, type Told } from '../../support/run-log.ts'
import { writesNoted } from '../../support/stores.ts'

export interface Placing {
  readonly baseUrl: string
  readonly apiKey: string
  readonly database: string
  /** True for a store that loses its rows with the page, which the test must detect. */
  readonly forgetful?: boolean
  readonly orders: readonly { readonly reference: string; readonly serviceId: string }[]
  readonly concurrency: number
  readonly timeout: number
  readonly totalTimeout: number
  /** True to recover orders of other pages, before and after the page's own. */
  readonly recover: boolean
  /** Scope of the rows, if known. Then the page first reports the rows in the store. */
  readonly scope: string | undefined
}

export type PageEvent =
  | { readonly type: 'opened'; readonly rows: readonly StoredRow[] }
  | { readonly type: 'begin'; readonly kind: 'create'; readonly intent: string; readonly time: number }
  | { readonly type: 'begin'; readonly kind: 'recover'; readonly time: number }
  | {
      readonly type: 'end'
      readonly call: number
      readonly time: number
      readonly rows: readonly StoredRow[]
      readonly told?: Told
      readonly recovered?: Recovered[]
    }
  | { readonly type: 'written'; readonly row: StoredRow }

declare global {
  interface Window {
    /** Resolves to the number of the call when the test has received the event. */
    report: (event: PageEvent) => Promise<number>
    placeOrders: typeof placeOrders
    removeDatabase: typeof removeDatabase
  }
}

const rowsOf = async (store: OrderStore, scope: string | undefined): Promise<readonly StoredRow[]> =>
  scope === undefined ? [] : await walk((options) => store.list(scope, options), 100)

async function placeOrders({ database, orders, concurrency, recover, ...plan }: Placing): Promise<void> {
  const store =
    plan.forgetful === true ? new MemoryStore() : new IndexedDbStore({ name: database, openTimeout: 30_000 })
  let { scope } = plan
  // The test hears of a write before the client does.
  const watched = writesNoted(store, (row) => window.report({ type: 'written', row }))
  const client = new CustomerOrderingClient({
    baseUrl: plan.baseUrl,
    apiKey: plan.apiKey,
    dangerouslyAllowBrowser: true,
    account: 'browser',
    store: {
      ...watched,
      get: (asked, id) => {
        scope = asked
        return watched.get(asked, id)
      },
    },
    timeout: plan.timeout,
    totalTimeout: plan.totalTimeout,
  })
  await window.report({ type: 'opened', rows: await rowsOf(store, scope) })
  const known = new Set<string>()
  if (recover) await recoverAll(known)
  const waiting = orders.filter(({ reference }) => !known.has(reference))
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await create(next)
    }),
  )
  if (recover) await recoverAll(known)
  await client.close()

  async function recoverAll(settled: Set<string>): Promise<void> {
    const call = await window.report({ type: 'begin', kind: 'recover', time: Date.now() })
    const recovered: Recovered[] = []
    for await (const found of client.orders.recover({ takeOver: true })) {
      const { outcome, record } = found
      const intent = record.externalOrderId ?? ''
      recovered.push(recoveredOf(intent, found, Date.now()))
      if (outcome === 'created' || outcome === 'rejected') settled.add(intent)
    }
    const rows = await rowsOf(store, scope)
    await window.report({ type: 'end', call, time: Date.now(), rows, recovered })
  }

  async function create({ reference, serviceId }: Placing['orders'][number]): Promise<void> {
    const call = await window.report({ type: 'begin', kind: 'create', intent: reference, time: Date.now() })
    const metadata = { externalOrderId: reference }
    let told: Told
    try {
      const order = await client.orders.create({ serviceId, target: '@browser', quantity: 1, metadata })
      told = { charged: 'yes', orderId: order.id }
    } catch (error) {
      if (!isCustomerOrderingError(error)) throw error
      told = { charged: error.charged, code: error.code }
    }
    const rows = await rowsOf(store, scope)
    await window.report({ type: 'end', call, time: Date.now(), rows, told })
  }
}

/** Deletes a database, even while other pages have it open: they close it. */
function removeDatabase(name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase(name)
    request.onsuccess = () => resolve()
    request.onerror = () => reject(request.error)
    request.onblocked = () => reject(new Error('a page keeps the database open'))
  })
}

window.placeOrders = placeOrders
window.removeDatabase = removeDatabase
