/**
 * A worker for tests, which runs in workerd. It performs tasks with stores, clients and SQL, in D1
 * or in a Durable Object.
 */
import { DurableObject } from 'cloudflare:workers'
import { CustomerOrderingClient } from '../../../src/index.ts'
import { D1Store } from '../../../src/stores/d1.ts'
import { DurableObjectStore } from '../../../src/stores/durable-object.ts'
import type { OrderStore } from '../../../src/stores/store.ts'
import type { D1, Place, Reply, Storage, Task } from './platform.ts'

interface Env {
  readonly DB: D1
  readonly ORDERS: { getByName(name: string): { perform(task: Task): Promise<Reply> } }
  readonly BASE_URL: string
  readonly API_KEY: string
}

/** What performs a task: the worker for D1, the object for its storage. */
interface Site {
  open(): OrderStore
  sql(text: string, parameters: readonly (string | number)[]): Promise<readonly object[]>
  readonly storage?: Storage
  readonly handles: Map<string, OrderStore>
}

function openClient(site: Site, env: Env): CustomerOrderingClient {
  return new CustomerOrderingClient({
    baseUrl: env.BASE_URL,
    apiKey: env.API_KEY,
    account: 'workers',
    server: 'workers',
    store: site.open(),
    timeout: 2_000,
    totalTimeout: 5_000,
  })
}

async function perform(task: Task, site: Site, env: Env): Promise<unknown> {
  switch (task.task) {
    case 'store': {
      const store = site.handles.get(task.handle) ?? site.open()
      site.handles.set(task.handle, store)
      return await Reflect.apply(store[task.method], store, task.args)
    }
    case 'sql':
      return await site.sql(task.sql, task.parameters ?? [])
    case 'remembered': {
      const records = await openClient(site, env).orders.remembered({ since: 0 })
      return records.map(({ externalOrderId, state, order }) => [externalOrderId, state, order?.id])
    }
    case 'transaction':
      return await roll(task, site, env)
    case 'abort':
      throw new Error('only an object can be aborted')
  }
}

/** Places an order within a transaction of the application, which is rolled back. */
async function roll(
  { how, reference }: Task & { task: 'transaction' },
  site: Site,
  env: Env,
): Promise<unknown> {
  const client = openClient(site, env)
  let order: Promise<unknown> | undefined
  const place = () => {
    const metadata = { externalOrderId: reference }
    order = client.orders.create({ serviceId: 'svc_standard', target: '@ada', quantity: 1, metadata })
    order.catch(() => {})
    return order
  }
  try {
    if (how === 'sync')
      site.storage?.transactionSync(() => {
        place()
        throw new Error('rolled back')
      })
    else
      await site.storage?.transaction(async () => {
        await place()
        throw new Error('rolled back')
      })
  } catch (error) {
    if (!(error instanceof Error) || error.message !== 'rolled back') throw error
  }
  await order
  return 'placed'
}

async function replyOf(action: () => Promise<unknown>): Promise<Reply> {
  try {
    return { value: await action() }
  } catch (error) {
    const of = (from: unknown, field: string): unknown => Reflect.get(Object(from), field)
    return {
      error: {
        message: error instanceof Error ? error.message : String(error),
        code: of(error, 'code'),
        applied: of(error, 'applied'),
        charged: of(error, 'charged'),
        cause: of(of(error, 'cause'), 'code'),
      },
    }
  }
}

export class Orders extends DurableObject<Env> {
  readonly #site: Site = {
    // Each store checks the tables, as it would after a restart of the object.
    open: () => {
      const { sql } = this.ctx.storage
      return new DurableObjectStore({ storage: { sql, sync: () => this.ctx.storage.sync() } })
    },
    sql: async (text, parameters) => {
      const rows = this.ctx.storage.sql.exec(text, ...parameters).toArray()
      await this.ctx.storage.sync()
      return rows
    },
    storage: this.ctx.storage,
    handles: new Map(),
  }

  async perform(task: Task): Promise<Reply> {
    if (task.task === 'abort') this.ctx.abort('aborted by a test')
    return await replyOf(() => perform(task, this.#site, this.env))
  }
}

const handles = new Map<string, OrderStore>()

const siteOfD1 = ({ DB }: Env): Site => ({
  // Each store checks the tables, as it would in another isolate.
  open: () => new D1Store({ database: { prepare: (text) => DB.prepare(text) } }),
  sql: async (text, parameters) => {
    const statement = DB.prepare(text).bind(...parameters)
    return (await statement.all()).results
  },
  handles,
})

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { store, name, ...task }: Place & Task = await request.json()
    const reply =
      store === 'object'
        ? await env.ORDERS.getByName(name)
            .perform(task)
            .catch((error: Error): Reply => ({ error: { message: error.message } }))
        : await replyOf(() => perform(task, siteOfD1(env), env))
    return Response.json(reply)
  },
}
