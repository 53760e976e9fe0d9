import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { CustomerOrderingClient, type OrderOutbox } from 'customer-ordering-sdk'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { type PostgresClient, PostgresStore } from 'customer-ordering-sdk/stores/postgres'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { serveSandbox } from '../../../src/sandbox/http/server.ts'
import { makeRow } from '../../../src/stores/contract/rows.ts'
import type { OrderStore } from '../../../src/stores/store.ts'
import { embedded, postgresServer } from '../support/during.ts'
import { execute, makePool, type PgPool } from '../support/postgres-clients.ts'
import { describeWith } from '../support/services.ts'

const request = (externalOrderId: string, quantity = 2) => ({
  serviceId: 'svc_standard',
  target: '@ada',
  quantity,
  metadata: { externalOrderId },
})

function clientOver(sandbox: ReturnType<typeof createSandbox>, store: OrderStore): CustomerOrderingClient {
  const { baseUrl, apiKey, fetch } = sandbox
  return new CustomerOrderingClient({ baseUrl, apiKey, fetch, account: 'shop-eu', store })
}

async function recover(client: CustomerOrderingClient): Promise<string[]> {
  const seen: string[] = []
  for await (const { outcome, record } of client.orders.recover())
    seen.push(`${outcome} ${record.externalOrderId}`)
  return seen.toSorted()
}

describeWith('clients', 'orders written in a transaction of an embedded database', () => {
  const open = embedded()
  beforeAll(() => open().exec('CREATE TABLE checkouts (id text PRIMARY KEY)'))

  it('recover() sends an enqueued order once after the commit, and never after a rollback', async () => {
    const sandbox = createSandbox()
    const store = new PostgresStore({ client: open() })
    await store.migrate()
    const [first, second] = [
      clientOver(sandbox, store),
      clientOver(sandbox, new PostgresStore({ client: open() })),
    ]
    for (const [reference, fails] of [
      ['shop-1', false],
      ['shop-2', true],
    ] as const) {
      await open()
        .transaction(async (transaction) => {
          await transaction.query('INSERT INTO checkouts VALUES ($1)', [reference])
          const within = store.within(transaction)
          expect(await first.orders.enqueue(request(reference), { within })).toMatchObject({ state: 'open' })
          if (fails) throw new Error('the checkout failed')
        })
        .catch(() => {})
    }
    expect(sandbox.requests).toEqual([])
    expect(await recover(second)).toEqual(['created shop-1'])
    expect(await recover(first)).toEqual([])
    sandbox.expectChargedOnce('shop-1')
    sandbox.expectCharges(1)
    expect((await open().query('SELECT id FROM checkouts')).rows).toEqual([{ id: 'shop-1' }])
    // The next call for the same order gets that order.
    expect((await second.orders.create(request('shop-1'))).id).toBe(sandbox.ledger[0]?.orderId)
    sandbox.expectCharges(1)
  })

  it('the client of a transaction cannot place an order, which would be sent before the commit', async () => {
    await open().transaction(async (transaction) => {
      const outbox: OrderOutbox = new PostgresStore({ client: open() }).within(transaction)
      // @ts-expect-error It is no whole store.
      expect(() => clientOver(createSandbox(), outbox)).toThrow(/store/)
    })
  })
})

describeWith('postgres', 'orders written in a transaction of a server', () => {
  const server = postgresServer()
  let pool: PgPool
  let store: PostgresStore
  let served: Awaited<ReturnType<typeof serveSandbox>>
  const sandbox = createSandbox()
  const children = new Set<ChildProcess>()
  const script = fileURLToPath(new URL('./processes/outbox.ts', import.meta.url))

  beforeAll(async () => {
    served = await serveSandbox(sandbox)
    pool = makePool(server().url)
    await pool.query('CREATE TABLE checkouts (id text PRIMARY KEY)')
    store = new PostgresStore({ client: pool })
    await store.migrate()
  })
  afterEach(() => {
    for (const child of children) child.kill('SIGKILL')
    children.clear()
  })
  afterAll(async () => {
    await pool.end()
    await served.close()
  })

  const client = () => new CustomerOrderingClient({ ...here(), store })
  /** The service's address for every process of the fleet. */
  const here = () => ({ baseUrl: served.url, apiKey: sandbox.apiKey, account: 'shop-eu' })

  function start(task: string, reference = ''): ChildProcess {
    const parameters = [server().url, served.url, sandbox.apiKey, task, reference]
    const child = fork(script, parameters, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    children.add(child)
    return child
  }

  /** The reports of a recovering process, until it ends. */
  async function told(child: ChildProcess, until = Number.POSITIVE_INFINITY): Promise<string[]> {
    const lines: string[] = []
    child.on('message', (line) => {
      lines.push(String(line))
      if (lines.length >= until) child.kill('SIGKILL')
    })
    await once(child, 'exit')
    return lines
  }

  async function inTransaction<T>(
    work: (connection: PostgresClient) => Promise<T>,
    level = 'READ COMMITTED',
  ): Promise<T> {
    const connection = await pool.connect()
    try {
      await connection.query(`BEGIN ISOLATION LEVEL ${level}`)
      const result = await work(connection)
      await connection.query('COMMIT')
      return result
    } catch (error) {
      await connection.query('ROLLBACK')
      throw error
    } finally {
      connection.release()
    }
  }

  it('an enqueued order disappears if its process is killed before the commit', async () => {
    const child = start('buy', 'killed-1')
    await once(child, 'message')
    // No other connection can see the row yet.
    expect(await recover(client())).toEqual([])
    child.kill('SIGKILL')
    await once(child, 'exit')
    // This call waits for the dead transaction if the server has not noticed its end.
    expect((await client().orders.create(request('killed-1'))).amount).toBe(500)
    expect(sandbox.expectChargedOnce('killed-1')).toBeTruthy()
    expect((await execute(server().url, 'SELECT id FROM checkouts')).length).toBe(0)
  })

  it('two concurrent recoveries send an enqueued order once, even if one process is killed', async () => {
    const references = Array.from({ length: 40 }, (_, index) => `fleet-${index}`)
    const before = sandbox.ledger.length
    for (const reference of references) {
      await inTransaction(async (connection) => {
        await connection.query('INSERT INTO checkouts VALUES ($1)', [reference])
        await client().orders.enqueue(request(reference), { within: store.within(connection) })
      })
    }
    expect(sandbox.ledger.length).toBe(before)
    await Promise.all([told(start('recover')), told(start('recover'), 5)])
    await told(start('take over'))
    for (const reference of references) sandbox.expectChargedOnce(reference)
    expect(sandbox.ledger.length).toBe(before + references.length)
    for await (const record of client().orders.unresolved()) throw new Error(`${record.slot} is still open`)
  })

  it('a refused order can be enqueued again, and stays refused if that transaction rolls back', async () => {
    sandbox.setBalance(sandbox.customerId, 0)
    await expect(client().orders.create(request('refused-1'))).rejects.toMatchObject({ charged: 'no' })
    sandbox.setBalance(sandbox.customerId, 1_000_000)
    const again = (connection: PostgresClient) =>
      client().orders.enqueue(request('refused-1', 3), { within: store.within(connection) })
    await expect(
      inTransaction(async (connection) => {
        expect(await again(connection)).toMatchObject({ state: 'open', version: 3 })
        throw new Error('the checkout failed')
      }),
    ).rejects.toThrow('the checkout failed')
    const remembered = async () => {
      for await (const { state } of client().orders.remembered({ externalOrderId: 'refused-1' })) return state
      return undefined
    }
    expect(await remembered()).toBe('rejected')
    await inTransaction(again)
    expect(await recover(client())).toEqual(['created refused-1'])
    expect(sandbox.expectChargedOnce('refused-1').amount).toBe(750)
  })

  it('two concurrent transactions enqueue one order, the second after waiting for the first', async () => {
    const enqueue = (connection: PostgresClient) =>
      client().orders.enqueue(request('twin-1'), { within: store.within(connection) })
    let second: Promise<unknown> = Promise.resolve()
    const first = await inTransaction(async (connection) => {
      const record = await enqueue(connection)
      second = inTransaction(enqueue)
      second.catch(() => {})
      return record
    })
    expect(await second).toEqual(first)
    expect(await recover(client())).toEqual(['created twin-1'])
    sandbox.expectChargedOnce('twin-1')
  })

  const enqueueing = (order: ReturnType<typeof request>) => (connection: PostgresClient) =>
    client().orders.enqueue(order, { within: store.within(connection) })

  /** Resolves when a statement waits for a lock. */
  async function untilBlocked(): Promise<string> {
    const waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    while ((await pool.query(waiting)).rows.length === 0);
    return 'waits'
  }

  it.each(['REPEATABLE READ', 'SERIALIZABLE'])(
    'with %s, enqueue() rejects if the enqueued order was refused after the transaction began',
    async (level) => {
      const reference = `stale-${level.length}`
      const enqueue = enqueueing({ ...request(reference), serviceId: 'svc_sold_out' })
      await inTransaction(enqueue)
      const late = inTransaction(async (connection) => {
        await connection.query('SELECT FROM checkouts')
        expect(await recover(client())).toEqual([`rejected ${reference}`])
        await enqueue(connection)
      }, level)
      await expect(late).rejects.toMatchObject({
        code: 'store',
        charged: 'unknown',
        externalOrderId: reference,
        message: expect.stringContaining('Roll back, and repeat the whole transaction.'),
        cause: { code: 'store', applied: false, cause: { code: '40001' } },
      })
      // The repeated transaction enqueues the order again, so a recovery sends it.
      expect(await inTransaction(enqueue, level)).toMatchObject({ state: 'open' })
      expect(await recover(client())).toEqual([`rejected ${reference}`])
    },
  )

  it('an order that a transaction has found enqueued is not settled before the commit', async () => {
    const order = request('held-1')
    await inTransaction(enqueueing(order))
    const events: string[] = []
    let settled: Promise<unknown> = Promise.resolve()
    await inTransaction(async (connection) => {
      expect(await enqueueing(order)(connection)).toMatchObject({ state: 'open' })
      settled = client()
        .orders.resolve({ externalOrderId: 'held-1' }, { as: 'abandoned' })
        .then(({ state }) => events.push(state))
      settled.catch(() => {})
      events.push(await Promise.race([untilBlocked(), settled.then(() => 'does not wait')]))
    })
    events.push('committed')
    await settled
    expect(events[0]).toBe('waits')
    expect(events.toSorted()).toEqual(['committed', 'rejected', 'waits'])
  })

  it('a transaction locks the row of its order, and neither delays other orders nor reads', async () => {
    for (const name of ['own-1', 'own-2', 'own-3']) await inTransaction(enqueueing(request(name)))
    await inTransaction(async (first) => {
      const held = await enqueueing(request('own-1'))(first)
      await inTransaction(async (second) => {
        expect(await enqueueing(request('own-2'))(second)).toMatchObject({ state: 'open' })
        expect(await enqueueing(request('own-4'))(second)).toMatchObject({ state: 'open' })
      })
      const [found] = await client().orders.remembered({ externalOrderId: 'own-1' })
      expect(found).toEqual(held)
      await client().orders.create(request('own-3'))
    })
    expect(await recover(client())).toEqual(['created own-1', 'created own-2', 'created own-4'])
  })

  it('an insert in a transaction that finds a row locks it, too', async () => {
    const row = makeRow(1)
    await store.insert(row)
    await inTransaction(async (connection) => {
      expect(await store.within(connection).insert(row)).toEqual({ inserted: false, current: row })
      const unlocked = 'SELECT FROM customer_ordering_rows WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED'
      expect((await pool.query(unlocked, [row.id])).rows).toEqual([])
    })
  })

  it('create() continues an enqueued order as soon as its transaction is committed', async () => {
    let placed: Promise<unknown> = Promise.resolve()
    const { key } = await inTransaction(async (connection) => {
      const record = await client().orders.enqueue(request('now-1'), { within: store.within(connection) })
      placed = client().orders.create(request('now-1'))
      placed.catch(() => {})
      return record
    })
    await placed
    expect(sandbox.expectChargedOnce('now-1').idempotencyKey).toBe(key)
    expect(await recover(client())).toEqual([])
  })

  it('an order cannot be enqueued outside a transaction, or in a failed one', async () => {
    const connection = await pool.connect()
    const enqueue = () => client().orders.enqueue(request('none-1'), { within: store.within(connection) })
    await expect(enqueue()).rejects.toMatchObject({ code: 'store' })
    await connection.query('BEGIN')
    await connection.query('SELECT 1/0').catch(() => {})
    await expect(enqueue()).rejects.toMatchObject({ code: 'store' })
    await connection.query('ROLLBACK')
    connection.release()
    for await (const record of client().orders.remembered({ externalOrderId: 'none-1' }))
      throw new Error(`${record.slot} was written`)
  })
})
