/** Tests the handler of docs/guide/proxy.md in servers that are based on `node:http`. */
import { existsSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createServer as createViteServer, type Plugin } from 'vite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { root } from '../../scripts/ensure-built.ts'
import { CustomerOrderingClient } from '../../src/client.ts'
import { type SandboxServer, serveSandbox } from '../../src/sandbox/http/server.ts'
import { createSandbox, type Sandbox } from '../../src/sandbox/index.ts'
import { failure, order } from '../support/lab.ts'
import { notRun } from '../support/needs.ts'
import { programsOf } from './support/pages.ts'

interface Block {
  readonly handle: (...parameters: [...Parameters<RequestListener>, next: (error: unknown) => void]) => void
  readonly orderingProxy: Plugin
}

type Express = () => RequestListener & { use(path: string, handler: Block['handle']): void }

const folder = join(root, '.tmp/proxy')
const site = join(root, 'docs/site/package.json')

async function listening(listener: RequestListener): Promise<Server> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

describe('the handler for Node servers of docs/guide/proxy.md', () => {
  let sandbox: Sandbox
  let service: SandboxServer
  let block: Block

  beforeAll(async () => {
    sandbox = createSandbox()
    service = await serveSandbox(sandbox)
    process.env['CUSTOMER_ORDERING_BASE_URL'] = service.url
    process.env['CUSTOMER_ORDERING_API_KEY'] = sandbox.apiKey
    const [, code = ''] = programsOf('docs/guide/proxy.md')
    await mkdir(folder, { recursive: true })
    const file = join(folder, 'handler.ts')
    await writeFile(file, code)
    block = await import(file)
  })
  afterAll(async () => {
    await service.close()
    await rm(folder, { recursive: true, force: true })
  })

  /**
   * Checks that a visitor's page can place an order through the server, and a stranger's cannot.
   */
  async function sells(name: string, server: Pick<Server, 'address'>): Promise<void> {
    const { port } = server.address() as AddressInfo
    const page = (cookie: string) =>
      new CustomerOrderingClient({
        baseUrl: `http://127.0.0.1:${port}/api`,
        apiKey: null,
        server: service.url,
        account: 'shop',
        maxRetries: 0,
        fetch: (input, init) => {
          const request = new Request(input, init)
          request.headers.set('cookie', cookie)
          return fetch(request)
        },
      })
    const placed = await page('session=ada').orders.create(order(name))
    expect(sandbox.expectChargedOnce(name).orderId).toBe(placed.id)
    expect(await page('session=ada').orders.retrieve(placed.id)).toMatchObject({ id: placed.id })
    const error = await failure(page('session=eve').orders.create(order(`${name}-stranger`)))
    expect(error).toMatchObject({ code: 'authentication', charged: 'no' })
    sandbox.expectNotCharged(`${name}-stranger`)
  }

  test('the documented handler places an order through node:http', async () => {
    const server = await listening((incoming, outgoing) =>
      block.handle(incoming, outgoing, (error) => outgoing.writeHead(500).end(String(error))),
    )
    await sells('node', server)
    server.close()
  })

  test("the documented handler places an order through Vite's dev server", async () => {
    const vite = await createViteServer({
      configFile: false,
      root: folder,
      logLevel: 'error',
      plugins: [block.orderingProxy],
      optimizeDeps: { noDiscovery: true },
      server: { port: 0, host: '127.0.0.1', ws: false, watch: null },
    })
    await vite.listen()
    await sells('vite', vite.httpServer as Server)
    await vite.close()
  })

  if (existsSync(join(root, 'docs/site/node_modules')))
    test('the documented handler places an order through Express', async () => {
      const express: Express = createRequire(site)('express')
      const app = express()
      app.use('/api', block.handle)
      const server = await listening(app)
      await sells('express', server)
      server.close()
    })
  else notRun('the documented handler in Express', 'run `npm ci --prefix docs/site`')
})
