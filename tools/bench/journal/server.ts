/** A service with minimum cost: it responds to every POST with an order, over a real socket. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const server = createServer((request, response) => {
  let length = 0
  request.on('data', (chunk: Uint8Array) => {
    length += chunk.length
  })
  request.on('end', () => {
    const order = {
      id: `ord_${request.headers['idempotency-key']}`,
      status: 'pending',
      amount: length,
      currency: 'EUR',
    }
    const body = JSON.stringify(order)
    response.writeHead(201, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
    response.end(body)
  })
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.once('disconnect', () => process.exit())
