import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { serveSandbox } from 'customer-ordering-sdk/sandbox/server'
import { expect, it } from 'vitest'
import { CustomerOrderingClient } from '../../src/client.ts'
import { createProxy, type ProxyLoss } from '../../src/proxy/index.ts'
import { order } from '../support/lab.ts'

/** A node:http server around a handler of Fetch requests. */
async function serve(handle: (request: Request) => Promise<Response>): Promise<Server> {
  const server = createServer(async (incoming, outgoing) => {
    const { method = 'GET', url = '/', headers } = incoming
    const body = method === 'POST' ? new Uint8Array(await buffer(incoming)) : null
    const request = new Request(`http://${headers.host}${url}`, {
      method,
      headers: headers as HeadersInit,
      body,
    })
    const response = await handle(request)
    outgoing
      .writeHead(response.status, Object.fromEntries(response.headers))
      .end(new Uint8Array(await response.arrayBuffer()))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

it('an order over real connections is placed once while the service drops, truncates and resets them', async () => {
  const sandbox = createSandbox()
  const service = await serveSandbox(sandbox)
  const losses: ProxyLoss[] = []
  const proxy = createProxy({
    baseUrl: service.url,
    apiKey: sandbox.apiKey,
    authorize: (request) => request.headers.get('x-visitor') === 'ada',
    onLost: (loss) => losses.push(loss),
  })
  const server = await serve(proxy)
  const client = new CustomerOrderingClient({
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/anywhere`,
    apiKey: null,
    server: service.url,
    account: 'shop',
    defaultHeaders: { 'x-visitor': 'ada' },
  })
  try {
    expect((await client.services.list()).items.length).toBeGreaterThan(0)
    for (const type of ['commitThenDrop', 'cutBody', 'drop'] as const) {
      sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type } })
      const placed = await client.orders.create(order(type))
      expect(placed.id).toBe(sandbox.expectChargedOnce(type).orderId)
    }
    expect(losses.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /v1/orders',
      'POST /v1/orders',
    ])
  } finally {
    await client.close()
    server.close()
    server.closeAllConnections()
    await service.close()
  }
})
