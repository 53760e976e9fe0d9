/** The server as started in production: its required variables, and who may use it. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestOptions, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Sandbox } from 'customer-ordering-sdk/sandbox'
import { type SandboxServer, serveSandbox } from 'customer-ordering-sdk/sandbox/server'
import { createShopSandbox } from '../server/sandbox.ts'
import { openBrowser } from './browser.ts'

const script = fileURLToPath(new URL('../server/main.ts', import.meta.url))

describe('the server in production', () => {
  let sandbox: Sandbox
  let service: SandboxServer
  let server: ChildProcess
  let environment: Record<string, string>
  let port = 0
  let origin = ''

  function start(changes: Readonly<Record<string, string>> = {}): ChildProcess {
    const env = { ...process.env, ...environment, ...changes }
    return spawn(process.execPath, [script], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  }

  before(async () => {
    const probe = createServer().listen(0, '127.0.0.1')
    await once(probe, 'listening')
    port = (probe.address() as AddressInfo).port
    probe.close()
    origin = `http://127.0.0.1:${port}`
    sandbox = createShopSandbox()
    service = await serveSandbox(sandbox)
    environment = {
      CUSTOMER_ORDERING_BASE_URL: service.url,
      CUSTOMER_ORDERING_API_KEY: sandbox.apiKey,
      SHOP_ORIGIN: `https://shop.example/, ${origin}`,
      SHOP_PASSWORD: 'öffne: dich',
      PORT: String(port),
    }
    server = start()
    if (server.stdout !== null) await once(server.stdout, 'data')
  })
  after(async () => {
    server?.kill()
    await service?.close()
  })

  async function ask(options: RequestOptions): Promise<{ status: number | undefined; body: string }> {
    const outgoing = request({ host: '127.0.0.1', port, ...options }).end()
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
    return { status: incoming.statusCode, body: await text(incoming) }
  }

  const signIn = (password: string) => `Basic ${Buffer.from(`ada:${password}`).toString('base64')}`

  test('the server does not start if a required variable is missing or wrong', async () => {
    for (const [name, value] of [
      ['CUSTOMER_ORDERING_BASE_URL', ''],
      ['CUSTOMER_ORDERING_API_KEY', ''],
      ['SHOP_ORIGIN', ''],
      ['SHOP_ORIGIN', 'shop.example'],
      ['SHOP_PASSWORD', ''],
    ] as const) {
      const refusing = start({ [name]: value })
      const [told, [code]] = await Promise.all([
        refusing.stderr === null ? '' : text(refusing.stderr),
        once(refusing, 'exit'),
      ])
      assert.equal(code, 2, name)
      assert.match(told, new RegExp(name))
    }
  })

  test('the server rejects requests without the password, even from this machine', async () => {
    const page = { 'sec-fetch-site': 'same-origin', origin }
    for (const headers of [
      page,
      { ...page, authorization: signIn('wrong') },
      { ...page, authorization: 'Basic' },
    ])
      for (const [method, path] of [
        ['GET', '/'],
        ['GET', '/api/v1/balance'],
        ['POST', '/api/v1/orders'],
      ] as const)
        assert.equal((await ask({ method, path, headers })).status, 401)
    assert.equal(sandbox.requests.length, 0)
  })

  test('the server accepts orders only from pages of its own origins', async () => {
    const authorization = signIn('öffne: dich')
    const order = async (from: string) =>
      await ask({
        method: 'POST',
        path: '/api/v1/orders',
        headers: {
          authorization,
          'sec-fetch-site': 'same-origin',
          origin: from,
          'idempotency-key': 'k-1',
          'content-type': 'application/json',
        },
      })
    assert.equal((await ask({ path: '/', headers: { authorization } })).status, 200)
    assert.equal((await order('https://other.example')).status, 403)
    assert.equal(sandbox.requests.length, 0)
    // The service rejects the order, which is incomplete.
    for (const own of [origin, 'https://shop.example']) assert.equal((await order(own)).status, 400)
    assert.equal(sandbox.requests.length, 2)
  })

  test('the server sells to a visitor whose browser sends the password', async () => {
    const browser = await openBrowser()
    try {
      const httpCredentials = { username: 'ada', password: 'öffne: dich' }
      const visitor = await browser.visitor({ httpCredentials })
      const page = await visitor.newPage()
      await page.goto(origin)
      await page.getByRole('radio', { name: /Profile boost/ }).check()
      await page.getByLabel('For whom').fill('@ada')
      await page.getByRole('button', { name: 'Place order' }).press('Enter')
      await page.getByRole('heading', { name: 'Order placed' }).waitFor()
      sandbox.expectCharges(1)
    } finally {
      await browser.close()
    }
  })
})
