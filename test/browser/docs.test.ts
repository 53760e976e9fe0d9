import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { CustomerOrderingClient } from 'customer-ordering-sdk'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type SandboxServer, serveSandbox } from '../../src/sandbox/http/server.ts'
import { createSandbox, type Sandbox } from '../../src/sandbox/index.ts'
import { programsOf } from '../docs/support/pages.ts'
import { Chromium } from './support/chromium.ts'
import { describeWithChromium } from './support/needs-chromium.ts'
import { type Site, serveScript } from './support/site.ts'

const folder = fileURLToPath(new URL('../../.tmp/browser-docs/', import.meta.url))

declare global {
  interface Window {
    openClient: () => CustomerOrderingClient
    settle: (client: CustomerOrderingClient) => Promise<void>
  }
}

describeWithChromium('What docs/guide/stores/indexeddb.md shows of IndexedDbStore', () => {
  let browser: Chromium
  let site: Site
  let server: SandboxServer
  let sandbox: Sandbox

  beforeAll(async () => {
    const code = programsOf('docs/guide/stores/indexeddb.md').find((program) =>
      program.includes('/stores/indexeddb'),
    )
    mkdirSync(folder, { recursive: true })
    const script = join(folder, 'shop.ts')
    writeFileSync(script, `${code}\nObject.assign(window, { openClient, settle })\n`)
    sandbox = createSandbox()
    server = await serveSandbox(sandbox)
    const { apiKey } = sandbox
    site = await serveScript('shop', script, { path: '/api', baseUrl: server.url, apiKey })
    browser = await Chromium.start()
  })
  afterAll(async () => {
    await browser?.stop()
    await site?.close()
    await server?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  async function openShop(): Promise<{ page: Page; printed: string[] }> {
    const page = await browser.context.newPage()
    const printed: string[] = []
    page.on('console', (message) => printed.push(message.text()))
    await page.goto(site.pageOf('shop'))
    return { page, printed }
  }

  const place = (page: Page, externalOrderId: string) =>
    page.evaluate(async (reference) => {
      const client = window.openClient()
      const metadata = { externalOrderId: reference }
      return (
        await client.orders.create({ serviceId: 'svc_standard', target: '@ada', quantity: 1, metadata })
      ).id
    }, externalOrderId)

  it('a documented page places an order through a server that adds the key, and the next page remembers it', async () => {
    const { page } = await openShop()
    const id = await place(page, 'cart-1')
    await page.close()
    const { page: next } = await openShop()
    expect(await place(next, 'cart-1')).toBe(id)
    expect(sandbox.requests).toHaveLength(1)
    sandbox.expectChargedOnce('cart-1')
    await next.close()
  })

  it('the documented page settles an order of a page that was closed in the middle of it', async () => {
    sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'stall', commit: true } })
    const { page } = await openShop()
    const before = sandbox.requests.length
    const left = place(page, 'cart-2').catch(() => 'closed')
    await expect.poll(() => sandbox.requests.length, { timeout: 20_000 }).toBeGreaterThan(before)
    await page.close()
    expect(await left).toBe('closed')
    const { page: next, printed } = await openShop()
    // Only read the order: its claim is still valid, so the dead page may be alive.
    const settled = next.evaluate(() => window.settle(window.openClient())).catch(() => 'closed')
    await expect.poll(() => printed, { timeout: 20_000 }).toEqual(['cart-2 in_progress'])
    await next.evaluate(async () => {
      for await (const { outcome, record } of window.openClient().orders.recover({ takeOver: true }))
        console.log(record.externalOrderId, outcome)
    })
    expect(printed.slice(1)).toEqual(['cart-2 created'])
    sandbox.expectChargedOnce('cart-2')
    await next.close()
    expect(await settled).toBe('closed')
  })
})
