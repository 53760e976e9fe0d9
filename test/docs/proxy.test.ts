/**
 * Tests the proxy for Node servers of docs/guide/proxy.md in real servers. `tools/packages`
 * installs Express and Fastify.
 */
import { existsSync } from 'node:fs'
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import type { RequestListener, Server } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { transform } from 'esbuild'
import { createServer as createViteServer } from 'vite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CustomerOrderingClient } from '../../src/client.ts'
import { createNodeProxy } from '../../src/proxy/node.ts'
import { serveSandbox } from '../../src/sandbox/http/server.ts'
import { createSandbox } from '../../src/sandbox/index.ts'
import { root } from '../../tools/build/ensure-built.ts'
import { failure, order } from '../support/lab.ts'
import { describeUnless } from '../support/needs.ts'
import { compiled } from './support/compile.ts'
import { programsOf } from './support/pages.ts'

/** What the test needs of it: its types are installed with it. */
interface FastifyInstance {
  readonly inject: unknown
  readonly server: Server
  listen(options: { readonly port: number; readonly host: string }): Promise<unknown>
}

const folder = join(root, '.tmp/proxy')
const [, plain = '', express = '', fastify = ''] = programsOf('docs/guide/proxy.md')

const sandbox = createSandbox()
const service = await serveSandbox(sandbox)
afterAll(() => service.close())

beforeAll(async () => {
  process.env['CUSTOMER_ORDERING_BASE_URL'] = service.url
  process.env['CUSTOMER_ORDERING_API_KEY'] = sandbox.apiKey
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function run(name: string, code: string) {
  const { code: javascript } = await transform(code, { loader: 'ts', target: 'es2022' })
  const file = join(folder, `${name}.mjs`)
  await writeFile(file, javascript)
  return await import(file)
}

async function listening(server: Server): Promise<Server> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

async function serverOf(app: RequestListener | FastifyInstance): Promise<Server> {
  if (!('inject' in app)) return await listening(createServer(app))
  await app.listen({ port: 0, host: '127.0.0.1' })
  return app.server
}

/** Checks that a visitor's page can place an order through the server, and a stranger's cannot. */
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
  const request = { ...order(name), metadata: { externalOrderId: name, '10': 'ü', '2': 1e21 } }
  const placed = await page('session=ada').orders.create(request)
  expect(sandbox.expectChargedOnce(name).orderId).toBe(placed.id)
  expect(await page('session=ada').orders.retrieve(placed.id)).toMatchObject({ id: placed.id })
  const error = await failure(page('session=eve').orders.create(order(`${name}-stranger`)))
  expect(error).toMatchObject({ code: 'authentication', charged: 'no' })
  sandbox.expectNotCharged(`${name}-stranger`)
  const elsewhere = await fetch(`http://127.0.0.1:${port}/api/v1/services/v1/orders`, { method: 'POST' })
  expect(elsewhere.status).toBe(404)
}

test('the documented proxy places an order through node:http', async () => {
  const { server } = await run('plain', plain)
  await sells('node', await listening(server))
  server.close()
})

test("the proxy places an order through Vite's dev server", async () => {
  const proxy = createNodeProxy({
    baseUrl: service.url,
    apiKey: sandbox.apiKey,
    authorize: ({ headers }) => headers['cookie'] === 'session=ada',
  })
  const vite = await createViteServer({
    configFile: false,
    root: folder,
    logLevel: 'error',
    plugins: [{ name: 'proxy', configureServer: ({ middlewares }) => void middlewares.use('/api', proxy) }],
    optimizeDeps: { noDiscovery: true },
    server: { port: 0, host: '127.0.0.1', ws: false, watch: null },
  })
  await vite.listen()
  await sells('vite', vite.httpServer as Server)
  await vite.close()
})

const packages = join(root, 'tools/packages/node_modules')

describeUnless(
  existsSync(packages) ? undefined : 'npx node tools/programs/install.ts tools/packages',
  'the proxy in Express and Fastify',
  () => {
    beforeAll(() => symlink(packages, join(folder, 'node_modules')))

    const parser = 'app.use(express.json())\n'
    const express4 = express.replace("from 'express'", "from 'express4'")
    /** Another parser of Fastify, and a request that no parser reads. */
    const buffers = (parse: string) =>
      fastify.replace(
        'app.all(',
        `app.removeAllContentTypeParsers()\napp.addContentTypeParser('application/json', ${parse})\napp.all(`,
      )
    const apps: readonly (readonly [name: string, code: string])[] = [
      ['Express 5, after a body parser', express],
      ['Express 5, before a body parser', express.replace(parser, '') + parser],
      ['Express 5, after a parser of bytes', express.replace('json()', "raw({ type: '*/*' })")],
      ['Express 4, after a body parser', express4],
      ['Express 4, before a body parser', express4.replace(parser, '') + parser],
      ['Fastify', fastify],
      [
        'Fastify with a parser of bytes',
        buffers("{ parseAs: 'buffer' }, (_, body, done) => done(null, body)"),
      ],
      ['Fastify without a parser', buffers('(_, payload, done) => done(null)')],
    ]
    test.each(apps)('the documented proxy places an order through %s', async (name, code) => {
      const { app } = await run(name.replaceAll(/\W/g, '-'), code)
      const server = await serverOf(app)
      await sells(name, server)
      server.close()
      server.closeAllConnections()
    })

    test.each([
      ['Express 5', express],
      ['Express 4', express4],
      ['Fastify', fastify],
    ])('an error of authorize goes to the error handler of %s', async (name, code) => {
      const handler = name.startsWith('Express')
        ? 'app.use((error, _request, response, _next) => response.status(503).end(error.message))'
        : 'app.setErrorHandler((error, _request, reply) => reply.code(503).send(error.message))\n'
      const fails = code.replace(/authorize: .*/, "authorize: () => { throw new Error('no sessions') },")
      const before = name === 'Fastify' ? fails.replace('app.all(', `${handler}app.all(`) : fails + handler
      const { app } = await run(`${name.replaceAll(/\W/g, '-')}-fails`, before)
      const server = await serverOf(app)
      const { port } = server.address() as AddressInfo
      const response = await fetch(`http://127.0.0.1:${port}/api/v1/balance`)
      expect([response.status, await response.text()]).toEqual([503, 'no sessions'])
      server.close()
    })

    test('the documented code compiles with the types of the frameworks', async () => {
      await writeFile(join(folder, 'express.ts'), express)
      await writeFile(join(folder, 'fastify.ts'), fastify)
      expect(await compiled(folder, { skipLibCheck: true })).toBe('')
    })
  },
)
