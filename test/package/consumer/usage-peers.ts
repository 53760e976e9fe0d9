// The entry points that need another package.
import { metrics } from '@opentelemetry/api'
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { sandboxHandlers } from 'customer-ordering-sdk/msw'
import { observeOpenOrders, telemetryHooks, traceHeaders } from 'customer-ordering-sdk/opentelemetry'
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

export async function observe(baseUrl: string): Promise<void> {
  const client = new CustomerOrderingClient({ baseUrl, hooks: telemetryHooks({ baseUrl }) })
  const stop = observeOpenOrders(client, { meterProvider: metrics })
  await client.balance.retrieve({ headers: traceHeaders() })
  stop()
}
