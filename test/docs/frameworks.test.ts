/**
 * Runs the blocks of docs/guide/frameworks.md, each in its framework. `tools/packages`
 * installs the frameworks.
 */
import { existsSync } from 'node:fs'
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { transform } from 'esbuild'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { serveSandbox } from '../../src/sandbox/http/server.ts'
import { createSandbox } from '../../src/sandbox/index.ts'
import { root } from '../../tools/build/ensure-built.ts'
import { pglite } from '../stores/support/postgres-clients.ts'
import { temporaryFolder } from '../support/folder.ts'
import { describeUnless } from '../support/needs.ts'
import { compiled } from './support/compile.ts'
import { readPages } from './support/pages.ts'

const folder = join(root, '.tmp/frameworks')
const packages = join(root, 'tools/packages/node_modules')
const { text = '' } = readPages().find(({ path }) => path === 'docs/guide/frameworks.md') ?? {}
const blocks = new Map(
  [...text.matchAll(/^## (.+)\n[\s\S]*?```ts\n([\s\S]*?)```/gm)].map(([, name = '', code = '']) => [
    name.toLowerCase().replaceAll(/\W/g, ''),
    code,
  ]),
)

/** Values of a framework that only the test needs. */
const MORE: Readonly<Record<string, string>> = {
  nestjs: "import 'reflect-metadata'\nexport { NestFactory } from '@nestjs/core'\n",
  react: "export { createElement } from 'react'\nexport { renderToString } from 'react-dom/server'\n",
}

const missing = ['tools/packages', 'test/engines']
  .filter((path) => !existsSync(join(root, path, 'node_modules')))
  .map((path) => `npx node tools/programs/install.ts ${path}`)
  .at(0)

const sandbox = createSandbox()
const service = await serveSandbox(sandbox)
afterAll(() => service.close())

describeUnless(missing, 'docs/guide/frameworks.md', () => {
  const directory = temporaryFolder('frameworks')

  beforeAll(async () => {
    await rm(folder, { recursive: true, force: true })
    await mkdir(folder, { recursive: true })
    await symlink(packages, join(folder, 'node_modules'))
    for (const [name, code] of blocks) {
      const typescript = `${MORE[name] ?? ''}${code}`
      await writeFile(join(folder, `${name}.ts`), typescript)
      const experimentalDecorators = true
      const { code: javascript } = await transform(typescript, {
        loader: 'ts',
        target: 'es2022',
        tsconfigRaw: { compilerOptions: { experimentalDecorators } },
      })
      await writeFile(join(folder, `${name}.mjs`), javascript)
    }
    // The blocks store their orders in a file of their working directory.
    process.chdir(directory)
    process.env['CUSTOMER_ORDERING_BASE_URL'] = service.url
    process.env['CUSTOMER_ORDERING_API_KEY'] = sandbox.apiKey
  })
  afterAll(async () => {
    process.chdir(root)
    await rm(folder, { recursive: true, force: true })
  })

  const load = (name: string) => import(join(folder, `${name}.mjs`))
  const body = (serviceId = 'svc_standard') => ({ serviceId, target: '@ada', quantity: 1 })
  const put = (serviceId?: string): RequestInit => ({
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body(serviceId)),
  })

  /** Orders one item twice and one sold-out item, then checks the ledger. */
  async function buys(name: string, request: (reference: string, serviceId?: string) => Promise<number>) {
    expect([await request(`${name}-1`), await request(`${name}-1`)]).toEqual([200, 200])
    expect(await request(`${name}-2`, 'svc_sold_out')).toBe(422)
    sandbox.expectChargedOnce(`${name}-1`)
    sandbox.expectNotCharged(`${name}-2`)
  }

  async function overHttp(name: string, server: Server) {
    const { port } = server.address() as AddressInfo
    await buys(name, async (reference, serviceId) => {
      const response = await fetch(`http://127.0.0.1:${port}/orders/${reference}`, put(serviceId))
      return response.status
    })
  }

  test('the code of every framework compiles', async () => {
    expect(await compiled(folder, { skipLibCheck: true, experimentalDecorators: true })).toBe('')
  })

  test('the page has a block for each framework', () => {
    expect([...blocks.keys()]).toEqual([
      ...['nextjs', 'express', 'fastify', 'nestjs', 'hono', 'awslambda', 'cloudflareworkers', 'react'],
    ])
  })

  test('the Next.js code orders once', async () => {
    const { PUT, settle } = await load('nextjs')
    await settle()
    await buys('next', async (reference, serviceId) => {
      const params = Promise.resolve({ reference })
      const { status } = await PUT(new Request('https://shop.example', put(serviceId)), { params })
      return status
    })
  })

  test('the Express code orders once', async () => {
    const { app, client } = await load('express')
    const server: Server = await new Promise((resolve) => {
      const listening: Server = app.listen(0, '127.0.0.1', () => resolve(listening))
    })
    await overHttp('express', server)
    server.close()
    await client.close()
  })

  test('the Fastify code orders once', async () => {
    const { app } = await load('fastify')
    await buys('fastify', async (reference, serviceId) => {
      const call = { method: 'PUT', url: `/orders/${reference}`, payload: body(serviceId) }
      return (await app.inject(call)).statusCode
    })
    await app.close()
  })

  test('the NestJS code orders once', async () => {
    const { OrderingModule, NestFactory } = await load('nestjs')
    const app = await NestFactory.create(OrderingModule, { logger: false })
    await app.listen(0, '127.0.0.1')
    await overHttp('nest', app.getHttpServer())
    await app.close()
  })

  test('the Hono code orders once', async () => {
    const { app } = await load('hono')
    await buys('hono', async (reference, serviceId) => {
      const { status } = await app.request(`/orders/${reference}`, put(serviceId))
      return status
    })
  })

  test('the Lambda code orders once', async () => {
    const database = await pglite().PGlite.create()
    const { createHandlers } = await load('awslambda')
    const { order, recover } = createHandlers(database)
    await buys('lambda', async (reference, serviceId) => {
      const event = { pathParameters: { reference }, body: JSON.stringify(body(serviceId)) }
      return (await order(event)).statusCode
    })
    expect(await recover()).toEqual({ created: 0, stillOpen: 0, needsAttention: 0 })
    await database.close()
  })

  test('the Cloudflare Workers code forwards requests', async () => {
    const { default: worker } = await load('cloudflareworkers')
    const env = { ORDERING_URL: service.url, ORDERING_API_KEY: sandbox.apiKey }
    const ask = async (cookie: string): Promise<number> => {
      const request = new Request('https://shop.example/api/v1/balance', { headers: { cookie } })
      return (await worker.fetch(request, env)).status
    }
    expect([await ask('session=ada'), await ask('session=eve')]).toEqual([200, 401])
  })

  test('the React code is a hook', async () => {
    const { useOrder, createElement, renderToString } = await load('react')
    const View = () => createElement('p', null, useOrder({}, 'cart-1').state.is)
    expect(renderToString(createElement(View))).toBe('<p>idle</p>')
  })
})
