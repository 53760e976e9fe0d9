/** Runs the code of docs/guide/stores/indexeddb.md and docs/guide/browsers.md in the page after a page that died. */
import { basename } from 'node:path'
import { IDBFactory, IDBKeyRange } from 'fake-indexeddb'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { CustomerOrderingClient } from '../../src/client.ts'
import type { CreateOrderRequest, Order } from '../../src/schemas/order.ts'
import { deferred } from '../support/calls.ts'
import { Lab, order } from '../support/lab.ts'
import { exportsOf, programsOf } from './support/pages.ts'

interface PageCode {
  openClient(): CustomerOrderingClient
  place(client: CustomerOrderingClient, request: CreateOrderRequest): Promise<Order>
  settle(client: CustomerOrderingClient): Promise<void>
}

const pageCode = (page: string): Promise<PageCode> =>
  exportsOf(`browsers-${basename(page)}`, programsOf(page).slice(0, 1))

/** What the page prints until the end of the test. */
function linesPrinted(): string[] {
  const printed: string[] = []
  const log = vi.spyOn(console, 'log').mockImplementation((...words) => void printed.push(words.join(' ')))
  onTestFinished(() => log.mockRestore())
  return printed
}

test('the documented page orders at the server of its site, and the next page remembers the order', async () => {
  const { openClient } = await pageCode('docs/guide/stores/indexeddb.md')
  const { sandbox } = new Lab()
  const proxy: typeof fetch = (input, init) => {
    const asked = new Request(input, init)
    const passed = new Request(asked.url.replace('https://shop.example/api', sandbox.baseUrl), asked)
    passed.headers.set('authorization', `Bearer ${sandbox.apiKey}`)
    return sandbox.fetch(passed)
  }
  const globals = { location: new URL('https://shop.example'), indexedDB: new IDBFactory(), IDBKeyRange }
  for (const [name, value] of Object.entries({ ...globals, fetch: proxy })) vi.stubGlobal(name, value)
  onTestFinished(() => void vi.unstubAllGlobals())

  const { id } = await openClient().orders.create(order('r1'))
  expect((await openClient().orders.create(order('r1'))).id).toBe(id)
  expect(sandbox.requests).toHaveLength(1)
  expect(sandbox.expectChargedOnce('r1').orderId).toBe(id)
})

test('a reloaded page settles the order that the dead page still holds, and charges it once', async () => {
  const { settle } = await pageCode('docs/guide/stores/indexeddb.md')
  const lab = new Lab()
  await lab.dies((orders) => orders.create(order('r1')))
  // The page's waits use the clock of the lab.
  vi.stubGlobal('setTimeout', lab.runtime.setTimer)
  onTestFinished(() => void vi.unstubAllGlobals())
  const printed = linesPrinted()

  await settle(lab.elsewhere())
  expect(await lab.record('ref:r1')).toMatchObject({ state: 'created' })
  expect(printed.at(-1)).toBe('r1 created')
  lab.sandbox.expectChargedOnce('r1')
})

test('a page takes over from a dead page without waiting, but not while a tab places an order', async () => {
  const { place, settle } = await pageCode('docs/guide/browsers.md')
  const lab = new Lab()
  await lab.dies((orders) => orders.create(order('r1')))
  const printed = linesPrinted()

  const answered = deferred()
  let placing: Promise<Order> | undefined
  // Resolves once the request of the live tab has arrived.
  await new Promise<void>((arrived) => {
    const fetch: typeof globalThis.fetch = async (input, init) => {
      arrived()
      await answered.promise
      return await lab.sandbox.fetch(input, init)
    }
    placing = place(lab.elsewhere({ fetch }), order('r2'))
  })
  await settle(lab.elsewhere())
  expect(printed.toSorted()).toEqual(['r1 in_progress', 'r2 in_progress'])
  answered.resolve()
  await placing

  printed.length = 0
  await settle(lab.elsewhere())
  expect(printed).toEqual(['r1 created'])
  for (const reference of ['r1', 'r2']) lab.sandbox.expectChargedOnce(reference)
})
