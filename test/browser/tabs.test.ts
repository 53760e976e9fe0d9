import { afterAll, beforeAll, expect, it } from 'vitest'
import { serveSandbox } from '../../src/sandbox/http/server.ts'
import { createSandbox } from '../../src/sandbox/index.ts'
import { oneCharge, truth } from '../support/invariants.ts'
import { Chromium } from './support/chromium.ts'
import { describeWithChromium } from './support/needs-chromium.ts'
import { type Site, serveSite } from './support/site.ts'
import { WatchedRun } from './support/watched-run.ts'

const TABS = 4
const ORDERS = 20

describeWithChromium('Tabs that share an IndexedDbStore', () => {
  let browser: Chromium
  let site: Site

  beforeAll(async () => {
    browser = await Chromium.start()
    site = await serveSite('orders')
  })
  afterAll(async () => {
    await browser?.stop()
    await site?.close()
  })

  it(`tabs that race for ${ORDERS} references cause one charge each, and every tab gets the same order`, async () => {
    const sandbox = createSandbox({ behaviour: { processingTime: 20 } })
    const server = await serveSandbox(sandbox, { port: 0, cors: true })
    try {
      const orders = Array.from({ length: ORDERS }, (_, index) => ({
        reference: `race-${index}`,
        serviceId: 'svc_standard',
      }))
      const run = new WatchedRun(
        sandbox,
        orders.map(({ reference }) => reference),
      )
      const placing = {
        baseUrl: server.url,
        apiKey: sandbox.apiKey,
        database: 'race',
        orders,
        concurrency: 2,
        recover: false,
        scope: undefined,
        timeout: 10_000,
        totalTimeout: 60_000,
      }
      const pages = await Promise.all(
        Array.from({ length: TABS }, () => run.work(browser.context, site.pageOf('orders'), placing, false)),
      )
      await Promise.all(pages.map(({ ended }) => ended))
      run.look()
      expect(sandbox.ledger).toHaveLength(ORDERS)
      for (const { reference } of orders) {
        const { orderId } = sandbox.expectChargedOnce(reference)
        const told = run.log.calls.filter(({ intent }) => intent === reference).map((call) => call.told)
        expect(told).toEqual(Array.from({ length: TABS }, () => ({ charged: 'yes', orderId })))
      }
      expect([...oneCharge(run.log), ...truth(run.log), ...run.unwritten]).toEqual([])
      // The slower tab must have waited for the faster one instead of sending, too.
      expect(sandbox.requests).toHaveLength(ORDERS)
      // If one tab had been first with every order, the tabs would not have raced.
      const winners = new Set(run.log.rows.filter(({ version }) => version === 1).map(({ id }) => id))
      expect(winners.size).toBe(ORDERS)
    } finally {
      await server.close()
    }
  })
})
