/** Runs the suites in real browsers, each page under a strict policy. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type SandboxServer, serveSandbox } from '../../src/sandbox/http/server.ts'
import { createSandbox, type Sandbox } from '../../src/sandbox/index.ts'
import { POLLUTION } from '../client/setup/hostile-prototypes.ts'
import { loseFirstAnswers } from '../support/lost-answers.ts'
import { notRun } from '../support/needs.ts'
import type { Question, ToldQuestion } from './pages/service.ts'
import { clientFiles } from './support/client-files.ts'
import {
  ALLOWED,
  type CrossOriginService,
  REPEATED_STATUSES,
  serveCrossOrigin,
} from './support/cross-origin.ts'
import { BROWSERS, type OpenBrowser } from './support/real-browsers.ts'
import {
  type Control,
  type PageReport,
  type RunOptions,
  type StrictSite,
  serveStrictSite,
} from './support/strict-site.ts'

/** The price of the page's order, and the whole balance of its wallet. */
const PRICE = 250

const CUT = { code: 'connection', charged: 'unknown', attempts: 1 } as const
const UNPAID = { code: 'payment_required', charged: 'no', attempts: 1 } as const

/**
 * A POST that is charged, and whose connection is then reset without a response. `lost` is the
 * number of resets. `twice` is the caller's result if the browser resends such a request on its
 * own.
 */
const LOST = [
  { what: 'one answer is lost', preset: 'default', lost: 1, twice: { charged: 'yes', attempts: 1 } },
  { what: 'two answers are lost', preset: 'default', lost: 2, twice: CUT },
  // docs/decisions/a-browser-may-repeat.md: here the caller's result is wrong.
  { what: 'one is lost, and the wallet comes first', preset: 'balance-before-key', lost: 1, twice: UNPAID },
] as const

/** Headers about how long responses to reads may be cached. */
const CACHED = [
  { what: 'for ten minutes', read: { 'cache-control': 'private, max-age=600' } },
  // RFC 9111, 4.2.2: a browser may guess from this header how long a response is fresh.
  { what: 'by their last change alone', read: { 'last-modified': 'Mon, 01 Jan 2018 00:00:00 GMT' } },
] as const

/** The pages' requests to a sandbox. The order belongs to the customer. */
function controlOf(sandbox: Sandbox, customer: string): Control {
  return (asked) => {
    const question = asked as Question
    switch (question.type) {
      case 'fault':
        sandbox.faults.add(question.rule)
        return null
      case 'charges':
        return sandbox.ledger.filter(({ externalOrderId }) => externalOrderId === question.externalOrderId)
      case 'orderMade':
        return sandbox.addOrder({
          customer,
          target: '@ada',
          metadata: { externalOrderId: question.externalOrderId },
        }).id
      case 'statusChanged':
        sandbox.setOrderStatus(question.orderId, question.status)
        return null
    }
  }
}

let site: StrictSite
beforeAll(async () => {
  site = await serveStrictSite('client', 'contract', 'service', 'forbidden', 'prototypes')
})
afterAll(() => site.close())

describe.each(BROWSERS)('$name', (browser) => {
  const why = browser.missing()
  if (why !== undefined) return notRun('runs the suites', why)

  let open: OpenBrowser
  let sandbox: Sandbox
  let server: SandboxServer
  let service: CrossOriginService

  beforeAll(async () => {
    sandbox = createSandbox({ balance: 1_000_000_000 })
    loseFirstAnswers(sandbox)
    server = await serveSandbox(sandbox)
    service = await serveCrossOrigin(server.url, site.origin)
    open = await browser.start()
  })
  afterAll(async () => {
    await open?.close()
    await service?.close()
    await server?.close()
  })

  /** Runs the tests of a page, which must all pass, and returns its files. */
  async function run(page: string, options?: RunOptions): Promise<PageReport> {
    const begun = performance.now()
    const report = await site.run(page, open.open, options)
    expect(report.files.flatMap(({ failed }) => failed)).toEqual([])
    for (const { file, passed } of report.files) expect(passed, file).toBeGreaterThan(0)
    const passed = report.files.reduce((sum, file) => sum + file.passed, 0)
    const seconds = ((performance.now() - begun) / 1000).toFixed(1)
    const title = expect.getState().currentTestName?.split(' > ').at(-1)
    process.stdout.write(
      `${browser.name} ${open.version}, ${title}: ${passed} tests passed, ${report.violations.length} violations, ${seconds} s\n`,
    )
    return report
  }

  const inService = (part: string): RunOptions => ({
    query: { service: service.url, apiKey: sandbox.apiKey, part, repeats: String(browser.repeats) },
    service: service.url,
    control: controlOf(sandbox, sandbox.customerId),
  })

  /** Runs a part of the page `service` against its own shop. Returns the shop's requests. */
  async function runAt(
    shop: Sandbox,
    part: string,
    options: Omit<RunOptions, 'service'>,
    proxy: Parameters<typeof serveCrossOrigin>[2] = {},
  ): Promise<CrossOriginService['arrivals']> {
    const shopServer = await serveSandbox(shop)
    const cors = await serveCrossOrigin(shopServer.url, site.origin, proxy)
    try {
      const query = { service: cors.url, apiKey: shop.apiKey, part, ...options.query }
      await run('service', { ...options, query, service: cors.url })
    } finally {
      await cors.close()
      await shopServer.close()
    }
    return cors.arrivals
  }

  /** Places an order in one attempt on a used connection. Returns its result and its requests. */
  async function orderAt(shop: Sandbox, proxy?: Parameters<typeof serveCrossOrigin>[2]) {
    const told: unknown[] = []
    const control: Control = (question) => told.push((question as ToldQuestion).told)
    return { arrivals: await runAt(shop, 'onUsedConnection', { control }, proxy), told }
  }

  it('the client tests pass in the browser', async () => {
    const { files, violations } = await run('client')
    expect(files.map(({ file }) => file)).toEqual(clientFiles)
    expect(violations).toEqual([])
  })

  it('the store contract passes with IndexedDB', async () => {
    expect((await run('contract')).violations).toEqual([])
  })

  it('a page orders at a service of another origin, and sends only CORS-safe or listed headers', async () => {
    expect((await run('service', inService('suite'))).violations).toEqual([])
    expect(service.preflights).toBeGreaterThan(0)
    // A browser that never sends a POST on a used connection does not resend it.
    expect(service.arrivals.some(({ reused }) => reused)).toBe(browser.repeats)
    // One test sends more requests on purpose.
    expect([...service.asked].sort()).toEqual([...ALLOWED, 'x-shop'])
    expect(sandbox.faults.pending().filter(({ times }) => times !== 'always')).toEqual([])
  })

  it('a reloaded page settles the order that was in flight', async () => {
    expect((await run('service', inService('leave'))).violations).toEqual([])
    expect((await run('service', inService('comeBack'))).violations).toEqual([])
  })

  it.each(LOST)('an order is charged once if a connection ends without a response: $what', async (row) => {
    const shop = createSandbox({ preset: row.preset, balance: PRICE })
    shop.faults.add({
      match: { operation: 'createOrder' },
      action: { type: 'commitThenDrop' },
      times: row.lost,
    })
    const { told, arrivals } = await orderAt(shop)
    expect(shop.ledger).toHaveLength(1)
    const idempotencyKey = shop.ledger[0]?.idempotencyKey
    expect([told, arrivals]).toEqual(
      browser.repeats
        ? [
            [row.twice],
            [
              { idempotencyKey, reused: true },
              { idempotencyKey, reused: false },
            ],
          ]
        : [[CUT], [{ idempotencyKey, reused: false }]],
    )
  })

  it.each(
    REPEATED_STATUSES.flatMap((status) => [
      { status, gateway: false, what: 'comes as it is' },
      { status, gateway: true, what: 'is 504 by way of a gateway' },
    ]),
  )(
    'an order is charged once if $status after the charge $what, and is reported as in doubt',
    async ({ status, gateway }) => {
      // docs/decisions/a-browser-may-repeat.md: the service checks the balance first, and it is 0
      // by then.
      const shop = createSandbox({ preset: 'balance-before-key', balance: PRICE })
      shop.faults.add({
        match: { operation: 'createOrder' },
        action: { type: 'status', status, html: true, commit: true },
        times: 1,
      })
      const { told, arrivals } = await orderAt(shop, { gateway })
      expect(shop.ledger).toHaveLength(1)
      const repeated = !gateway && browser.repeatsAfter.includes(status)
      expect(arrivals).toHaveLength(repeated ? 2 : 1)
      expect(new Set(arrivals.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1)
      const doubt = { code: gateway ? 'server' : 'api', charged: 'unknown', attempts: 1 }
      expect(told).toEqual([repeated ? UNPAID : doubt])
    },
  )

  it.each(CACHED)("no response to a read comes from the browser's cache, $what", async ({ read }) => {
    const shop = createSandbox({ balance: 1_000_000 })
    const other = shop.addCustomer({ wallet: { amount: 500, currency: 'EUR' } })
    const otherApiKey = shop.addApiKey({ customer: other.id })
    await runAt(shop, 'cached', { query: { otherApiKey }, control: controlOf(shop, other.id) }, { read })
  })

  it.each(['as they are', 'polluted before', 'polluted after', 'frozen'])(
    'the client works and changes no global if prototypes are %s',
    async (mode) => {
      const { query, ...rest } = inService('prototypes')
      expect((await run('prototypes', { ...rest, query: { ...query, mode } })).violations).toEqual([])
      expect(JSON.stringify(sandbox.requests)).not.toContain(POLLUTION)
    },
  )

  it("the page's policy reports violations, so that none goes unnoticed", async () => {
    const { violations, files, trustedTypes } = await run('forbidden')
    // All three browsers support Trusted Types. Without support, the policy would have no effect.
    expect(trustedTypes).toBe(true)
    expect(files[0]?.passed).toBe(5)
    expect(violations.length).toBeGreaterThanOrEqual(5)
  })
})
