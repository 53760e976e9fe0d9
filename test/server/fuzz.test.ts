import { CustomerOrderingClient, CustomerOrderingError } from 'customer-ordering-sdk'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { effort } from '../support/effort.ts'
import { rawServer } from '../support/raw-server.ts'
import { transportUnderTest } from '../support/transport-under-test.ts'

const unhandled: unknown[] = []
const onUnhandled = (error: unknown): void => void unhandled.push(error)
beforeEach(() => void process.on('unhandledRejection', onUnhandled))
afterEach(() => {
  process.off('unhandledRejection', onUnhandled)
  expect(unhandled).toEqual([])
})

const bytes = fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array))
const order = { id: 'ord_1', status: 'pending', amount: 100, currency: 'EUR', productId: 'svc_1' }

/** Answers that begin well: a status, headers and a body, of which anything may be wrong. */
const answer = fc
  .record({
    version: fc.constantFrom('HTTP/1.1', 'HTTP/1.0', 'HTTP/2.0', 'HTTP/1.1 '),
    status: fc.oneof(fc.constantFrom(200, 201, 400, 401, 402, 403, 404, 409, 422, 429, 500), fc.nat(1200)),
    headers: fc.array(
      fc.tuple(
        fc.constantFrom(
          'content-length',
          'transfer-encoding',
          'content-encoding',
          'content-type',
          'retry-after',
          'x-request-id',
          'location',
          'connection',
          'set-cookie',
          'x',
        ),
        fc.oneof(
          fc.constantFrom(
            '0',
            '5',
            '999',
            'chunked',
            'gzip',
            'br',
            'deflate, gzip',
            'identity',
            'close',
            '/x',
          ),
          fc.string(),
        ),
      ),
      { maxLength: 6 },
    ),
    body: fc.oneof(
      fc.json().map((text) => Buffer.from(text)),
      fc.constant(Buffer.from(JSON.stringify(order))),
      fc.constant(Buffer.from(JSON.stringify([order]))),
      bytes,
    ),
    ends: fc.constantFrom('whole', 'cut'),
  })
  .map(({ version, status, headers, body, ends }) => {
    const lines = headers.map(([name, value]) => `${name}: ${value}`)
    const text = Buffer.concat([
      Buffer.from(`${[`${version} ${status} X`, ...lines].join('\r\n')}\r\n\r\n`),
      body,
    ])
    return ends === 'whole' ? text : text.subarray(0, Math.floor(text.length * 0.8))
  })

const wholeAnswer = Buffer.from(
  `HTTP/1.1 200 OK\r\ncontent-length: ${JSON.stringify(order).length}\r\n\r\n${JSON.stringify(order)}`,
)

test('whatever bytes a server sends, calls end in a result or in one of our errors', async () => {
  let next = Buffer.alloc(0)
  const server = await rawServer((socket) => socket.end(next))
  const runtime = {
    random: () => 0,
    // No wait between attempts; the connection always ends, so no time limit is needed.
    setTimer: (callback: () => void, milliseconds: number): (() => void) => {
      if (milliseconds > 10_000) return () => {}
      const timer = setImmediate(callback)
      return () => clearImmediate(timer)
    },
  }
  const client = new CustomerOrderingClient(
    {
      baseUrl: server.url,
      apiKey: 'key',
      maxRetries: 1,
      totalTimeout: 60_000,
      transport: transportUnderTest(),
    },
    runtime,
  )
  let results = 0
  await fc.assert(
    fc.asyncProperty(
      fc.oneof({ weight: 4, arbitrary: answer }, { weight: 1, arbitrary: bytes }),
      async (text) => {
        next = Buffer.from(text)
        const calls = [
          client.balance.retrieve(),
          client.orders.list(),
          client.orders.create({ serviceId: 'svc_1', target: '@x', quantity: 1 }, { allowDuplicate: true }),
        ]
        for (const [index, ended] of (await Promise.allSettled(calls)).entries()) {
          if (ended.status === 'fulfilled') {
            results++
            continue
          }
          expect(ended.reason).toBeInstanceOf(CustomerOrderingError)
          expect(ended.reason.message).toMatch(/^[ -~]+$/)
          // Without a whole answer nobody can have said that nothing was charged.
          if (index === 2 && ended.reason.status === undefined) expect(ended.reason.charged).toBe('unknown')
          if (index < 2) expect(ended.reason.charged).toBe('no')
        }
      },
    ),
    // A whole answer first, so that not every call fails whatever the random ones are.
    { numRuns: effort(40, 150), examples: [[wholeAnswer]] },
  )
  expect(results).toBeGreaterThan(0)
}, 60_000)
