import { createSandbox, type Sandbox, type SandboxOptions } from 'customer-ordering-sdk/sandbox'
import {
  type SandboxServer,
  type ServeSandboxOptions,
  serveSandbox,
} from 'customer-ordering-sdk/sandbox/server'
import { afterEach } from 'vitest'

const servers: SandboxServer[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

/** A sandbox on a port, until the end of the test. */
export async function serving(
  options: SandboxOptions = {},
  serverOptions: ServeSandboxOptions = {},
): Promise<{ readonly sandbox: Sandbox; readonly server: SandboxServer }> {
  const sandbox = createSandbox(options)
  const server = await serveSandbox(sandbox, serverOptions)
  servers.push(server)
  return { sandbox, server }
}
