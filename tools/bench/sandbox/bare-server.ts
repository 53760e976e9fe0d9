/**
 * The minimum server for Node: reads the request, and responds with as many bytes as the sandbox.
 * Prints the same line as the sandbox.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const order = JSON.stringify({
  id: 'ord_js96nhr6qerz',
  status: 'pending',
  amount: 250,
  serviceId: 'svc_standard',
  target: '@ada',
  quantity: 1,
  currency: 'EUR',
  metadata: { externalOrderId: 'shop-100000', sourceSystem: 'bench' },
  createdAt: '2026-01-01T00:00:00.000Z',
})
const headers = {
  'content-type': 'application/json',
  'x-request-id': 'req_js96nhr6qerz',
  'content-length': Buffer.byteLength(order),
}

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = Buffer.concat(chunks).toString('utf8')
    response.writeHead(body === '' ? 400 : 201, headers).end(order)
  })
})
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  console.log(`bare listening on http://127.0.0.1:${port} (API key: none)`)
})
