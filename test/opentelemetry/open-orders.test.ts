import { readFileSync } from 'node:fs'
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import { observeOpenOrders, telemetryHooks } from 'customer-ordering-sdk/opentelemetry'
import { expect, it } from 'vitest'
import { failure, Lab, order } from '../support/lab.ts'
import { storeOver } from '../support/stores.ts'

const MINUTE = 60_000

/** The metrics of a client's orders, as Prometheus reads them. */
function scraped() {
  const lab = new Lab()
  const reader = new PrometheusExporter({ preventServerStart: true })
  const meterProvider = new MeterProvider({ readers: [reader] })
  const hooks = telemetryHooks({ baseUrl: lab.sandbox.baseUrl, meterProvider })
  return {
    lab,
    hooks,
    observe: (client = lab.client({ hooks })) =>
      observeOpenOrders(client, { meterProvider, now: lab.runtime.now }),
    async scrape() {
      const { resourceMetrics, errors } = await reader.collect()
      return { text: new PrometheusSerializer().serialize(resourceMetrics), errors }
    },
  }
}

/** The data points of one metric, by their age label. */
function numbersOf(text: string, name: string): Record<string, number> {
  const lines = text.matchAll(new RegExp(`^${name}(?:\\{(.*)\\})? (\\S+)`, 'gm'))
  return Object.fromEntries(
    [...lines].map(([, labels = '', value]) => [
      /ordering_age="(\w+)"/.exec(labels)?.[1] ?? 'all',
      Number(value),
    ]),
  )
}

const COUNT = 'ordering_open_orders'
const READABLE = 'ordering_store_readable'
const OLDEST = 'ordering_oldest_open_order_age'

it('observeOpenOrders counts open orders by age, and reports the oldest until it is settled', async () => {
  const { lab, observe, scrape } = scraped()
  observe()
  const client = lab.client()
  const none = { '2m': 0, '20m': 0, '1h': 0, '1d': 0, older: 0 }
  expect(numbersOf((await scrape()).text, COUNT)).toEqual(none)
  expect(numbersOf((await scrape()).text, OLDEST)).toEqual({ all: 0 })

  for (const [reference, wait] of [
    ['oldest', 1441],
    ['old', 30],
    ['late', 10],
    ['just over', 2],
    ['new', 1],
  ] as const) {
    await lab.doubted('drop', order(reference))
    lab.runtime.jump(wait * MINUTE)
  }
  const { text } = await scrape()
  expect(numbersOf(text, COUNT)).toEqual({ '2m': 1, '20m': 2, '1h': 1, '1d': 0, older: 1 })
  expect(numbersOf(text, OLDEST)).toEqual({ all: (1441 + 30 + 10 + 2 + 1) * 60 })

  await client.orders.resolve({ externalOrderId: 'oldest' }, { as: 'abandoned' })
  expect(numbersOf((await scrape()).text, OLDEST)).toEqual({ all: (30 + 10 + 2 + 1) * 60 })
  // Observing sends nothing: only the five calls have sent a request.
  expect(lab.sandbox.requests).toHaveLength(5)
})

it('observeOpenOrders treats an order from a clock that is ahead as new', async () => {
  const { lab, observe, scrape } = scraped()
  observe()
  await lab.doubted('drop', order('ahead'))
  lab.runtime.jump(-MINUTE)
  const { text } = await scrape()
  expect([numbersOf(text, COUNT)['2m'], numbersOf(text, OLDEST)]).toEqual([1, { all: 0 }])
})

it('the age of an order does not count from an earlier refusal', async () => {
  const { lab, observe, scrape } = scraped()
  observe()
  lab.fault({ type: 'status', status: 402 })
  await failure(lab.create())
  lab.runtime.jump(1441 * MINUTE)
  await lab.doubted('drop')
  lab.runtime.jump(MINUTE)
  expect(numbersOf((await scrape()).text, OLDEST)).toEqual({ all: 60 })
})

it('observeOpenOrders reports an unreadable store as long as it is unreadable', async () => {
  const { lab, observe, scrape } = scraped()
  let gone = true
  const store = storeOver(lab.rows, {
    listOpen: async (...given) => {
      if (gone) throw new Error('gone')
      return await lab.rows.listOpen(...given)
    },
  })
  observe(lab.client({ store }))
  const first = await scrape()
  expect([numbersOf(first.text, READABLE), numbersOf(first.text, OLDEST)]).toEqual([{ all: 0 }, {}])
  gone = false
  const { text, errors } = await scrape()
  expect([numbersOf(text, READABLE), numbersOf(text, OLDEST), errors]).toEqual([{ all: 1 }, { all: 0 }, []])
  gone = true
  expect(numbersOf((await scrape()).text, READABLE)).toEqual({ all: 0 })
})

it('observeOpenOrders reads the store for each collection until it is stopped', async () => {
  const { lab, observe, scrape } = scraped()
  let reads = 0
  const store = storeOver(lab.rows, {
    listOpen: async (...given) => {
      reads++
      return await lab.rows.listOpen(...given)
    },
  })
  const stop = observe(lab.client({ store }))
  await scrape()
  await scrape()
  expect(reads).toBe(2)
  stop()
  await scrape()
  expect(reads).toBe(2)
})

it('every metric and label of the documented alerts exists in Prometheus', async () => {
  const { lab, hooks, observe, scrape } = scraped()
  observe()
  const client = lab.client({ hooks, maxRetries: 1 })
  lab.sandbox.faults.add({ times: 2, action: { type: 'commitThenDrop' } })
  await failure(client.orders.create(order('in-doubt')))
  await client.orders.recover({ takeOver: true })
  const { text } = await scrape()

  const page = readFileSync(new URL('../../docs/guide/opentelemetry.md', import.meta.url), 'utf8')
  const rules = /```yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? ''
  const named = new Set(rules.match(/\b(?:ordering|http_client)_\w+/g))
  expect(named.size).toBeGreaterThan(3)
  for (const name of named) expect(text).toMatch(new RegExp(`\\b${name}\\b`))
})
