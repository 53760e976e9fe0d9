import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { serveSandbox } from '../../../src/sandbox/http/server.ts'
import { createSandbox } from '../../../src/sandbox/index.ts'
import { root } from '../../../tools/build/ensure-built.ts'
import { programsOf } from '../../docs/support/pages.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { describeWith } from '../support/services.ts'
import { bundleWorker, type Miniflare, miniflare } from './workerd.ts'

const folder = join(root, '.tmp/worker-docs')

describeWith('clients', 'the workers that the documentation shows', () => {
  const running = new Set<Miniflare>()
  const ends: (() => unknown)[] = []
  const stop = async (worker: Miniflare): Promise<void> => {
    running.delete(worker)
    await worker.dispose()
  }
  afterEach(async () => {
    for (const worker of running) await stop(worker)
    for (const end of ends.splice(0).reverse()) await end()
  })

  async function start(page: string) {
    const [code = ''] = programsOf(`docs/guide/stores/${page}.md`)
    const entry = join(folder, `${page}.ts`)
    await mkdir(folder, { recursive: true })
    ends.push(() => rm(folder, { recursive: true, force: true }))
    // The test does not wait a minute for the alarm.
    await writeFile(entry, code.replace('60_000', '10'))
    const sandbox = createSandbox()
    const service = await serveSandbox(sandbox)
    ends.push(() => service.close())
    const disk = temporaryFolder('workerd', (remove) => ends.push(remove))
    const contents = await bundleWorker(entry)
    const run = (useSQLite = true): Miniflare => {
      const started = miniflare({
        cf: false,
        name: 'shop',
        modules: [{ type: 'ESModule', path: 'worker.mjs', contents }],
        compatibilityDate: '2026-07-01',
        d1Databases: { DB: 'orders' },
        d1Persist: disk,
        ...(page === 'd1' ? {} : { durableObjects: { ORDERS: { className: 'Orders', useSQLite } } }),
        durableObjectsPersist: disk,
        bindings: { ORDERING_URL: service.url, ORDERING_API_KEY: sandbox.apiKey },
      })
      running.add(started)
      return started
    }
    return { sandbox, run }
  }

  const send = (worker: Miniflare, reference: string, body: string) =>
    worker.dispatchFetch(`http://shop.test/orders/${reference}`, { method: 'PUT', body })
  const put = async (worker: Miniflare, reference: string, serviceId = 'svc_standard') => {
    const body = JSON.stringify({ serviceId, target: '@ada', quantity: 1 })
    const response = await send(worker, reference, body)
    return { status: response.status, body: JSON.parse(await response.text()) }
  }

  it.each(['d1', 'durable-object'])('the worker of the page %s places each order once', async (page) => {
    const { sandbox, run } = await start(page)
    const worker = run()
    const first = await Promise.all([put(worker, 'cart 1'), put(worker, 'cart 1')])
    const { orderId } = sandbox.expectChargedOnce('cart 1')
    for (const { status, body } of first) expect([status, body.id]).toEqual([200, orderId])
    expect(await put(worker, 'cart-2', 'svc_unknown')).toMatchObject({ status: 404, body: { charged: 'no' } })
    await stop(worker)

    // Another process remembers the order.
    const sent = sandbox.requests.length
    expect((await put(run(), 'cart 1')).body.id).toBe(orderId)
    expect(sandbox.requests.length).toBe(sent)
  })

  it('an object of a class without SQLite names the migration that it lacks', async () => {
    const { run } = await start('durable-object')
    const response = await send(run(false), 'cart-1', '{}')
    expect(await response.text()).toContain('its class is in new_sqlite_classes')
  })

  it.each(['d1', 'durable-object'])('the worker of page %s settles what requests left open', async (page) => {
    const { sandbox, run } = await start(page)
    const worker = run()
    sandbox.faults.add({
      match: { operation: 'createOrder' },
      times: 5,
      action: { type: 'status', status: 502, html: true, commit: true },
    })
    expect(await put(worker, 'cart-1')).toMatchObject({ status: 202, body: { charged: 'unknown' } })
    if (page === 'd1') {
      const { scheduled } = await worker.getWorker('shop')
      expect(await scheduled({ cron: '* * * * *' })).toMatchObject({ outcome: 'ok' })
    }
    // The alarm of the object.
    else await vi.waitFor(() => expect(sandbox.requests.length).toBe(6), { timeout: 20_000 })
    const { orderId } = sandbox.expectChargedOnce('cart-1')
    expect((await put(worker, 'cart-1')).body.id).toBe(orderId)
    expect(sandbox.requests.length).toBe(6)
  })
})
