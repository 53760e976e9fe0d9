/**
 * Starts the shop as in production, built and with its proxy, in front of a sandbox that tests can
 * inspect.
 */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { Sandbox } from 'customer-ordering-sdk/sandbox'
import { serveSandbox } from 'customer-ordering-sdk/sandbox/server'
import { createShopSandbox } from '../server/sandbox.ts'
import { createSite } from '../server/site.ts'

export interface Shop {
  readonly url: string
  readonly sandbox: Sandbox
  close(): Promise<void>
}

export async function openShop(): Promise<Shop> {
  const sandbox = createShopSandbox()
  const service = await serveSandbox(sandbox)
  const origins: string[] = []
  const site = createSite(fileURLToPath(new URL('../dist', import.meta.url)), {
    baseUrl: service.url,
    origins: () => origins,
    apiKeyFor: () => sandbox.apiKey,
  })
  site.listen(0, '127.0.0.1')
  await once(site, 'listening')
  const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}`
  origins.push(url)
  return {
    url,
    sandbox,
    close: async () => {
      const closed = once(site, 'close')
      site.close()
      site.closeAllConnections()
      await Promise.all([closed, service.close()])
    },
  }
}
