// The entry points that need a package of their own.
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { sandboxHandlers } from 'customer-ordering-sdk/msw'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { type UndiciTransportOptions, undiciTransport } from 'customer-ordering-sdk/undici'
import { setupServer } from 'msw/node'
import { ProxyAgent } from 'undici'

export function start(): void {
  setupServer(...sandboxHandlers(createSandbox(), { baseUrl: 'https://api.example.com' })).listen()
}

export function connect(proxy: string): CustomerOrderingClient {
  const options: UndiciTransportOptions = { dispatcher: new ProxyAgent(proxy) }
  return new CustomerOrderingClient({ transport: undiciTransport(options) })
}
