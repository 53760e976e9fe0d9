/**
 * Runs the suite that every store must pass inside workerd. Each test has its own objects. `GET /`
 * lists the tests; `GET /?run=3` runs the fourth.
 */
import { RpcTarget, WorkerEntrypoint } from 'cloudflare:workers'
import type { ListRowsOptions, OrderStore, PruneOptions, StoredRow } from 'customer-ordering-sdk'
import { storeContract } from 'customer-ordering-sdk/stores/contract'
import { DurableObjectStore, type OrderObjects } from '../durable-object-store.ts'
import { OrderObject } from '../order-object.ts'

/** An object that a test can restart, so that it forgets everything it has not stored. */
export class TestedObject extends OrderObject {
  restart(): void {
    this.ctx.abort('started again by a test')
  }
}

interface Env {
  readonly ORDERS: DurableObjectNamespace<TestedObject>
  /** {@link OtherWorker}, in another worker with its own isolate. */
  readonly OTHER: Service<OtherWorker>
}

/** The objects of one test. */
class TestObjects implements OrderObjects {
  readonly #env: Env
  readonly test: string
  readonly #used = new Set<string>()

  constructor(env: Env, test: string) {
    this.#env = env
    this.test = test
  }

  getByName(name: string): DurableObjectStub<TestedObject> {
    this.#used.add(name)
    return this.#env.ORDERS.getByName(`${this.test}:${name}`)
  }

  /** Ends all objects that the test used. The next call starts them again from the disk. */
  async restart(): Promise<void> {
    for (const name of this.#used) {
      const ended = await this.getByName(name)
        .restart()
        .then(
          () => false,
          () => true,
        )
      if (!ended) throw new Error('The object did not end.')
    }
  }
}

/** A store that another worker calls over RPC. */
class LentStore extends RpcTarget {
  readonly #store: DurableObjectStore

  constructor(store: DurableObjectStore) {
    super()
    this.#store = store
  }

  get(scope: string, id: string) {
    return this.#store.get(scope, id)
  }
  insert(row: StoredRow) {
    return this.#store.insert(row)
  }
  update(row: StoredRow, expectedVersion: number) {
    return this.#store.update(row, expectedVersion)
  }
  listOpen(scope: string, options: ListRowsOptions) {
    return this.#store.listOpen(scope, options)
  }
  list(scope: string, options: ListRowsOptions & { readonly since?: number }) {
    return this.#store.list(scope, options)
  }
  prune(scope: string, options: PruneOptions) {
    return this.#store.prune(scope, options)
  }
}

export class OtherWorker extends WorkerEntrypoint<Env> {
  open(test: string): LentStore {
    return new LentStore(new DurableObjectStore(new TestObjects(this.env, test)))
  }
}

async function openInOtherWorker(env: Env, test: string): Promise<OrderStore> {
  const lent = await env.OTHER.open(test)
  return {
    durability: 'server',
    get: async (scope, id) => await lent.get(scope, id),
    insert: async (row) => await lent.insert(row),
    update: async (row, expectedVersion) => await lent.update(row, expectedVersion),
    listOpen: async (scope, options) => await lent.listOpen(scope, options),
    list: async (scope, options) => await lent.list(scope, options),
    prune: async (scope, options) => await lent.prune(scope, options),
    close: async () => lent[Symbol.dispose](),
  }
}

interface Test {
  readonly title: string
  readonly body: () => Promise<void>
}

function contractTests(env: Env, name: string): readonly Test[] {
  const tests: Test[] = []
  const objects = new TestObjects(env, name)
  storeContract({
    test: {
      describe: (_title, body) => body(),
      it: (title, body) => tests.push({ title, body }),
    },
    createStore: () => new DurableObjectStore(objects),
    openSecond: () => openInOtherWorker(env, name),
    reopenStore: async () => {
      await objects.restart()
      return new DurableObjectStore(objects)
    },
  })
  return tests
}

export default {
  async fetch(request, env): Promise<Response> {
    const number = new URL(request.url).searchParams.get('run')
    const tests = contractTests(env, crypto.randomUUID())
    if (number === null) return Response.json(tests.map(({ title }) => title))
    try {
      await tests[Number(number)]?.body()
      return new Response('passed')
    } catch (error) {
      return new Response(error instanceof Error ? error.message : String(error), { status: 500 })
    }
  },
} satisfies ExportedHandler<Env>
