/**
 * The service for all measurements, in a separate process. Responds immediately, or after `argv[2]`
 * milliseconds.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ITEM_ID } from './service.ts'

const latency = Number(process.argv[2] ?? 0)
/** Orders in the list: enough for every program, so that the program decides where to stop. */
const TOTAL = Number(process.argv[3] ?? 2_000)

const order = (number: number): object => ({
  id: `ord_${String(number).padStart(10, '0')}`,
  status: 'delivered',
  amount: 1999,
  currency: 'EUR',
  serviceId: 'svc_standard',
  target: '@someone',
  quantity: 100,
  createdAt: '2026-01-01T00:00:00.000Z',
  note: 'a note of a usual length, as people write them',
  metadata: { externalOrderId: `invoice-${number}`, channel: 'web' },
})
const one = JSON.stringify(order(1))
/**
 * The same length without a reference: the client rejects a response with another reference than it
 * sent.
 */
const placed = one.replace('externalOrderId', 'integrationName')
const pages = new Map<string, string>()

/**
 * The same rows in the envelopes of other services' clients: paged by offset, by last id, and by
 * cursor.
 */
const ENVELOPES: Readonly<Record<string, (rows: readonly object[], end: number) => object>> = {
  orders: (data) => ({ data, total: TOTAL }),
  customers: (data, end) => ({ object: 'list', data, has_more: end < TOTAL }),
  files: (data, end) => ({ object: 'list', data, has_more: end < TOTAL }),
  pages: (results, end) => ({
    object: 'list',
    results,
    has_more: end < TOTAL,
    next_cursor: end < TOTAL ? String(end) : null,
  }),
}

function page(list: string, offset: number, limit: number): string {
  const known = pages.get(`${list} ${offset} ${limit}`)
  if (known !== undefined) return known
  const length = Math.max(0, Math.min(limit, TOTAL - offset))
  const rows = Array.from({ length }, (_, index) => order(offset + index))
  const text = JSON.stringify(ENVELOPES[list]?.(rows, offset + length))
  if (pages.size < 200) pages.set(`${list} ${offset} ${limit}`, text)
  return text
}

function offsetOf(query: URLSearchParams): number {
  const last = query.get('starting_after') ?? query.get('after')
  if (last !== null) return Number(last.slice('ord_'.length)) + 1
  return Number(query.get('start_cursor') ?? query.get('offset') ?? 0)
}

const server = createServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://localhost')
  const list = /^\/v1\/(\w+)$/.exec(url.pathname)?.[1]
  request.resume()
  request.on('end', () => {
    const query = url.searchParams
    const limit = Number(query.get('limit') ?? query.get('page_size') ?? 50)
    const isList = request.method === 'GET' && list !== undefined && list in ENVELOPES
    const key = request.headers['idempotency-key']
    // A new key creates a new order, as in a real service.
    const single = typeof key === 'string' ? placed.replace(ITEM_ID, `ord_${key}`) : one
    const text = isList ? page(list, offsetOf(query), limit) : single
    const answer = (): void => {
      response.writeHead(request.method === 'POST' ? 201 : 200, {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
      })
      response.end(text)
    }
    if (latency > 0) setTimeout(answer, latency)
    else answer()
  })
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.on('disconnect', () => process.exit())
