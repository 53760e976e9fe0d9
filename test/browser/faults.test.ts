import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { serveSandbox } from '../../src/sandbox/http/server.ts'
import { createSandbox } from '../../src/sandbox/index.ts'
import { oneCharge, truth } from '../support/invariants.ts'
import { Chromium } from './support/chromium.ts'
import { describeWithChromium } from './support/needs-chromium.ts'
import { type Site, serveSite } from './support/site.ts'
import { WatchedRun } from './support/watched-run.ts'

describeWithChromium('IndexedDbStore in Chromium, when the browser', () => {
  let browser: Chromium
  let site: Site
  const pages: Page[] = []

  beforeAll(async () => {
    browser = await Chromium.start()
    site = await serveSite('store', 'worker', 'orders')
  })
  afterAll(async () => {
    await browser?.stop()
    await site?.close()
  })
  afterEach(async () => {
    for (const page of pages.splice(0)) await page.close()
  })

  async function openPage(address = site.pageOf('store')): Promise<Page> {
    const page = await browser.context.newPage()
    pages.push(page)
    await page.goto(address)
    return page
  }

  /** Opens a page whose `store` has the row `1`. */
  async function openStore(name: string): Promise<Page> {
    const page = await openPage()
    await page.evaluate(async (database) => {
      window.store = new window.IndexedDbStore({ name: database })
      await window.store.insert(window.makeRow('1'))
    }, name)
    return page
  }

  const nextCall = (page: Page) => page.evaluate(() => window.failureOf(window.store.get('scope', '1')))

  /** Deletes a database of the page's origin. Resolves to the outcome. */
  const remove = (page: Page, name: string) =>
    page.evaluate((database) => window.endOf(indexedDB.deleteDatabase(database)), name)

  /** Limits the storage of the pages' origin. Returns a function that ends it. */
  async function limitQuota(quotaSize: number): Promise<() => Promise<unknown>> {
    const limited = await openPage()
    const session = await limited.context().newCDPSession(limited)
    const origin = new URL(limited.url()).origin
    await session.send('Storage.overrideQuotaForOrigin', { origin, quotaSize })
    return () => session.send('Storage.overrideQuotaForOrigin', { origin })
  }

  it('with a full quota, a write rejects without an effect, and succeeds when there is room again', async () => {
    const lift = await limitQuota(1_000_000)
    const page = await openStore('quota')
    const write = () =>
      page.evaluate(() => {
        const text = Array.from({ length: 80 }, () => window.randomText(30_000)).join('')
        return window.failureOf(window.store.insert(window.makeRow('2', text)))
      })
    const failure = await write()
    expect(failure).toMatchObject({ code: 'QuotaExceededError', applied: false })
    expect(failure?.message).toMatch(/^StoreError: Cannot write .* no more space.* Nothing was written\.$/)
    expect(await page.evaluate(() => window.store.get('scope', '2'))).toBeUndefined()
    await lift()
    expect(await write()).toBeUndefined()
  })

  it('with no quota at all, an order that could not be stored is not bought, and the error states it', async () => {
    // Chromium cannot even open a database if the previous test's rows exceed the quota.
    await remove(await openPage(), 'quota')
    const lift = await limitQuota(100_000)
    const page = await openStore('full')
    await page.evaluate(async () => {
      // Fill the quota with ever smaller rows, until no record fits.
      for (const length of [10_000, 1_000, 100]) {
        let failure: unknown
        for (let row = 0; failure === undefined; row++) {
          const next = window.makeRow(`${length}-${row}`, window.randomText(length))
          failure = await window.failureOf(window.store.insert(next))
        }
      }
    })
    const place = (reference: string) =>
      page.evaluate((name) => window.placeOrder(window.store, name), reference)
    const { failure, requests } = await place('r1')
    await lift()
    expect(failure).toMatchObject({ charged: 'no' })
    expect(failure?.message).toMatch(/^StoreError: The order could not be stored.* Nothing was written\.$/)
    expect(requests).toBe(0)
    expect((await place('r1')).failure).toBeUndefined()
  })

  it('if another page holds a transaction, a write rejects in time, has no late effect, and later succeeds', async () => {
    const frozen = await openStore('frozen')
    await frozen.evaluate(async () => {
      const request = indexedDB.open('frozen')
      await window.endOf(request)
      window.release = window.holdTransaction(request.result)
    })
    const page = await openPage()
    const [read, write, placed] = await page.evaluate(async () => {
      window.store = new window.IndexedDbStore({ name: 'frozen', openTimeout: 500 })
      const { store, makeRow } = window
      const failures = [
        window.failureOf(store.get('scope', '1')),
        window.failureOf(store.insert(makeRow('2'))),
      ]
      return [...(await Promise.all(failures)), (await window.placeOrder(store, 'r1')).failure]
    })
    expect(read?.message).toMatch(/^StoreError: .* has kept it busy for 500 ms.* Nothing was written\.$/)
    expect(write).toEqual({ ...read, applied: false })
    expect(placed?.message).toMatch(/^StoreError: .*nothing more was sent.* has kept it busy for 500 ms/)
    await frozen.evaluate(() => window.release())
    await expect.poll(() => nextCall(page), { timeout: 10_000 }).toBeUndefined()
    expect(await page.evaluate(() => window.store.get('scope', '2'))).toBeUndefined()
    expect(await page.evaluate(() => window.placeOrder(window.store, 'r1'))).toMatchObject({ requests: 1 })
  })

  const clearSiteData = async (page: Page): Promise<void> => {
    const session = await page.context().newCDPSession(page)
    const origin = new URL(site.pageOf('store')).origin
    await session.send('Storage.clearDataForOrigin', { origin, storageTypes: 'indexeddb' })
  }
  it.each([
    [
      'another page deletes the database',
      async () => expect(await remove(await openPage(), 'gone')).toBe('success'),
    ],
    ['the browser deletes the site data', clearSiteData],
  ])('if %s, the store releases it and rejects from then on', async (_how, removeRows) => {
    const page = await openStore('gone')
    await removeRows(page)
    expect((await nextCall(page))?.message).toMatch(/was deleted while its order store was in use/)
    // The store rejects even if another page has created a new database meanwhile.
    await openStore('gone')
    expect((await nextCall(page))?.message).toMatch(/was deleted/)
  })

  it('if a newer package version upgrades the database, the store releases it and rejects from then on', async () => {
    const page = await openStore('newer')
    const other = await openPage()
    const upgraded = await other.evaluate(() => window.endOf(indexedDB.open('newer', 2)))
    expect(upgraded).toBe('success')
    const failure = await nextCall(page)
    expect(failure?.code).toBe('VersionError')
    expect(failure?.message).toMatch(/a newer version of customer-ordering-sdk wrote it/)
  })

  it('if another page blocks the opening, the store rejects in time, and works when that page is gone', async () => {
    const stubborn = await openPage()
    await stubborn.evaluate(async () => {
      const request = indexedDB.open('blocked')
      await window.endOf(request)
      window.connection = request.result
    })
    const other = await openPage()
    expect(await remove(other, 'blocked')).toBe('blocked')
    const page = await openPage()
    const first = await page.evaluate(() => {
      window.store = new window.IndexedDbStore({ name: 'blocked', openTimeout: 200 })
      return window.failureOf(window.store.insert(window.makeRow('1')))
    })
    expect(first?.message).toMatch(/^StoreError: .* did not respond within 200 ms.* Nothing was written\.$/)
    await stubborn.evaluate(() => window.connection.close())
    await expect.poll(() => nextCall(page), { timeout: 10_000 }).toBeUndefined()
    expect(await page.evaluate(() => window.store.get('scope', '1'))).toBeUndefined()
  })

  it('if the page may store nothing, the error states it', async () => {
    const page = await openPage(site.originlessPageOf('store'))
    const failure = await page.evaluate(() =>
      window.failureOf(new window.IndexedDbStore({ name: 'orders' }).insert(window.makeRow('1'))),
    )
    expect(failure?.code).toBe('SecurityError')
    expect(failure?.message).toMatch(/^StoreError: .* does not let this page store anything/)
  })

  it('in a private window, the store works and leaves nothing behind', async () => {
    const insert = () => {
      const store = new window.IndexedDbStore({ name: 'private' })
      return store.insert(window.makeRow('1'))
    }
    const context = await browser.privateContext()
    const page = await context.newPage()
    await page.goto(site.pageOf('store'))
    expect(await page.evaluate(insert)).toEqual({ inserted: true })
    expect(await page.evaluate(insert)).toMatchObject({ inserted: false })
    await context.close()
    expect(await (await openPage()).evaluate(insert)).toEqual({ inserted: true })
  })

  it('in a web worker, the store shares its rows with the page', async () => {
    const page = await openPage()
    const inWorker = () =>
      new Promise((resolve) => {
        const worker = new Worker('/worker.js')
        worker.onmessage = ({ data }) => resolve(data)
      })
    expect(await page.evaluate(inWorker)).toBe(true)
    expect(await page.evaluate(inWorker)).toBe(false)
    const found = await page.evaluate(() => new window.IndexedDbStore({ name: 'shared' }).get('scope', 'id'))
    expect(found).toMatchObject({ data: 'worker' })
  })

  it('if tabs race for references, each causes one charge, and every tab gets the same order', async () => {
    const [TABS, ORDERS] = [4, 20]
    const sandbox = createSandbox({ behaviour: { processingTime: 20 } })
    const server = await serveSandbox(sandbox, { port: 0, cors: true })
    const references = Array.from({ length: ORDERS }, (_, index) => `race-${index}`)
    const run = new WatchedRun(sandbox, references)
    const placing = {
      baseUrl: server.url,
      apiKey: sandbox.apiKey,
      database: 'race',
      orders: references.map((reference) => ({ reference, serviceId: 'svc_standard' })),
      concurrency: 2,
      recover: false,
      scope: undefined,
      timeout: 10_000,
      totalTimeout: 60_000,
    }
    try {
      const tabs = Array.from({ length: TABS }, () =>
        run.work(browser.context, site.pageOf('orders'), placing, false),
      )
      for (const { page, ended } of await Promise.all(tabs)) {
        pages.push(page)
        await ended
      }
      run.look()
      for (const reference of references) {
        const { orderId } = sandbox.expectChargedOnce(reference)
        const told = run.log.calls.filter(({ intent }) => intent === reference).map((call) => call.told)
        expect(told).toEqual(Array.from({ length: TABS }, () => ({ charged: 'yes', orderId })))
      }
      expect([...oneCharge(run.log), ...truth(run.log), ...run.unwritten]).toEqual([])
      // The slower tab must have waited for the faster one instead of sending, too.
      expect(sandbox.requests).toHaveLength(ORDERS)
    } finally {
      await server.close()
    }
  })
})
