/** The service that everything is measured against, in a process of its own: answers at once, or after `argv[2]` milliseconds. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const latency = Number(process.argv[2] ?? 0)
/** Orders in the list; enough for every programme, so that its end is what the programme says. */
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
const pages = new Map<string, string>()

function page(offset: number, limit: number): string {
  const known = pages.get(`${offset} ${limit}`)
  if (known !== undefined) return known
  const length = Math.max(0, Math.min(limit, TOTAL - offset))
  const text = JSON.stringify({
    data: Array.from({ length }, (_, index) => order(offset + index)),
    total: TOTAL,
  })
  if (pages.size < 100) pages.set(`${offset} ${limit}`, text)
  return text
}

const server = createServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://localhost')
  const isList = request.method === 'GET' && /\/(orders|customers)$/.test(url.pathname)
  request.resume()
  request.on('end', () => {
    const limit = Number(url.searchParams.get('limit') ?? 50)
    const text = isList ? page(Number(url.searchParams.get('offset') ?? 0), limit) : one
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
