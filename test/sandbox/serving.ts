import { createSandbox, type SandboxOptions } from 'customer-ordering-sdk/sandbox'
import {
  type SandboxServer,
  type ServeSandboxOptions,
  serveSandbox,
} from 'customer-ordering-sdk/sandbox/server'
import { afterEach } from 'vitest'
import { orderInit } from './caller.ts'

const servers: SandboxServer[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

/** A sandbox on a port, until the end of the test, and calls of its personal customer. */
export async function serving(options: SandboxOptions = {}, serverOptions: ServeSandboxOptions = {}) {
  const sandbox = createSandbox(options)
  const server = await serveSandbox(sandbox, serverOptions)
  servers.push(server)
  const { authorization = '' } = orderInit(sandbox.apiKey).headers
  return {
    sandbox,
    server,
    order: (key = 'k', init: RequestInit = {}) =>
      fetch(`${server.url}/v1/orders`, { ...orderInit(sandbox.apiKey, key), ...init }),
    get: (path: string) => fetch(server.url + path, { headers: { authorization } }),
  }
}
