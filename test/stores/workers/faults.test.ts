import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { type D1Binding, D1Store } from 'customer-ordering-sdk/stores/d1'
import { DurableObjectStore } from 'customer-ordering-sdk/stores/durable-object'
import { expect, it } from 'vitest'
import { makeRow, nextVersion, SCOPE } from '../../../src/stores/contract/rows.ts'
import { throwing } from '../../support/calls.ts'
import { order } from '../../support/lab.ts'
import { callsOf, expectFailure, expectFailures, failureOf, shopOver, writesOf } from '../support/failures.ts'
import { describeWith } from '../support/services.ts'
import { runningWorkerd } from './workerd.ts'

type Statement = ReturnType<ReturnType<D1Binding['prepare']>['bind']>
type All = Statement['all']

/** A binding whose statements run as `around` decides. */
const bindingOf = (around: (sql: string, parameters: readonly unknown[]) => ReturnType<All>): D1Binding => ({
  prepare: (sql) => ({ bind: (...parameters) => ({ all: () => around(sql, parameters) }) }),
})

/** A binding to which no statement gets through. */
const failing = (message: string): D1Binding => bindingOf(() => Promise.reject(new Error(message)))

it.each([
  ['nothing', undefined],
  ['an object without prepare()', { exec: () => {} }],
])('the constructor refuses %s', async (_, database) => {
  const options = { database } as unknown as { database: D1Binding }
  await expectFailure(() => new D1Store(options), 'the binding of a D1 database, such as env.DB')
})

it('the constructor refuses a session, which may read a replica', async () => {
  const session = { ...failing(''), getBookmark: () => null }
  await expectFailure(() => new D1Store({ database: session }), 'a session may read a replica')
})

it('nothing that a replica returns is believed', async () => {
  const database = bindingOf(async () => ({ results: [], meta: { served_by_primary: false } }))
  await expectFailures(callsOf(new D1Store({ database })), 'a read replica responded')
  const { sandbox, client } = shopOver(new D1Store({ database }))
  const created = client.orders.create(order('a'))
  await expect(created).rejects.toMatchObject({ charged: 'unknown', code: 'store' })
  expect(sandbox.requests).toEqual([])
})

it('a write is refused, and surely not made, on a platform that refuses the PRAGMA', async () => {
  const storage = {
    sql: {
      exec: (sql: string) => {
        if (sql.startsWith('PRAGMA')) throw new Error('not authorized: SQLITE_AUTH')
        return { toArray: () => [{ version: 1, keyed: 1 }] }
      },
    },
    sync: async () => {},
  }
  for (const write of writesOf(new DurableObjectStore({ storage }))) {
    const error = await expectFailure(write, 'does not allow this statement', 'SQLITE_AUTH')
    expect(error.applied).toBe(false)
  }
})

it('a write that finds no moment without a transaction is refused, and names both reasons', async () => {
  const storage = {
    sql: {
      exec: (sql: string) => ({
        toArray: () => (sql === 'PRAGMA foreign_keys' ? [{ foreign_keys: 1 }] : [{ version: 1, keyed: 1 }]),
      }),
    },
    sync: async () => {},
  }
  const error = await expectFailure(
    () => new DurableObjectStore({ storage }).insert(makeRow(1)),
    /inside storage\.transaction\(\).*or other code of the object kept transactions open/,
  )
  expect(error.applied).toBe(false)
})

it.each([
  ['nothing', undefined],
  ['a storage without SQLite', { sync: async () => {} }],
  [
    'a storage whose SQLite is forbidden',
    {
      sync: async () => {},
      sql: {
        exec: () => {},
        get databaseSize() {
          throw new Error('SQL is not enabled for this Durable Object class.')
        },
      },
    },
  ],
])('the constructor of DurableObjectStore refuses %s', async (_, storage) => {
  const options = { storage } as unknown as ConstructorParameters<typeof DurableObjectStore>[0]
  await expectFailure(() => new DurableObjectStore(options), 'its class is in new_sqlite_classes')
})

describeWith('clients', 'D1Store over a binding that loses requests and responses', () => {
  const running = runningWorkerd()
  let tests = 0

  /** Tables of its own in the real database. `fault` may fail a statement before or after it has run. */
  function open(fault: (sql: string, when: 'before' | 'after') => void = () => {}): D1Binding {
    const tables = `test_${++tests}_`
    return bindingOf(async (text, parameters) => {
      fault(text, 'before')
      const sql = text.replaceAll('customer_ordering_', tables)
      const task = { task: 'sql', sql, parameters: parameters as (string | number)[] } as const
      const results = (await running().perform({ store: 'd1', name: tables }, task)) as object[]
      fault(text, 'after')
      return { results }
    })
  }

  /** A store with row 1, whose statements have this fault from now on. */
  async function openBroken(fault: (sql: string, when: 'before' | 'after') => void): Promise<D1Store> {
    let broken = false
    const store = new D1Store({ database: open((sql, when) => broken && fault(sql, when)) })
    await store.insert(makeRow(1))
    broken = true
    return store
  }

  it('the stores over one binding check the tables once', async () => {
    const statements: string[] = []
    const database = open((sql, when) => {
      if (when === 'before') statements.push(sql)
    })
    await new D1Store({ database }).insert(makeRow(1))
    statements.splice(0)
    expect(await new D1Store({ database }).get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
    expect(statements).toHaveLength(1)
  })

  it.each([
    ['D1_ERROR: Network connection lost.', undefined, 'D1_ERROR'],
    ['D1_ERROR: Internal error in D1 DB storage caused object to be reset.', undefined, 'D1_ERROR'],
    [
      'D1_ERROR: D1 DB storage operation exceeded timeout which caused object to be reset.',
      undefined,
      'D1_ERROR',
    ],
    ['Network connection lost.', undefined, 'STORAGE'],
    ['D1_ERROR: D1 DB is overloaded. Too many requests queued.', false, 'OVERLOADED'],
    ['D1_ERROR: D1 DB is overloaded. Requests queued for too long.', false, 'OVERLOADED'],
    ['D1_ERROR: database or disk is full: SQLITE_FULL', false, 'SQLITE_FULL'],
    ['D1_ERROR: disk I/O error: SQLITE_IOERR', undefined, 'SQLITE_IOERR'],
  ] as const)('after "%s", a write is not wrongly reported as not made', async (message, applied, code) => {
    const store = await openBroken((sql, when) => {
      if (when === 'before' && /^(INSERT|UPDATE)/.test(sql)) throw new Error(message)
    })
    for (const write of writesOf(store).slice(0, 2)) {
      const error = await expectFailure(write, /^(Cannot write to t|T)he order store in D1/, code)
      expect(error.applied).toBe(applied)
    }
  })

  it.each(['', 'D1_ERROR: '])('rows quoted after "%s" are in no error, and prove nothing', async (prefix) => {
    const body = '{"results":[{"data":"{\\"target\\":\\"@ada: SQLITE_FULL'
    const store = await openBroken(throwing(`${prefix}Failed to parse body as JSON, got: ${body}`))
    for (const error of await expectFailures(callsOf(store), 'the connection or the storage failed')) {
      expect(`${error.stack}${error.cause}`).not.toContain('@ada')
      expect(error.applied).toBe(undefined)
    }
  })

  it('a write whose response is lost is unknown, also if the tables were upgraded since', async () => {
    const database = open()
    const upgrading = bindingOf(async (sql, parameters) => {
      const found = await database
        .prepare(sql)
        .bind(...parameters)
        .all()
      if (!sql.startsWith('INSERT INTO customer_ordering_rows')) return found
      await database.prepare('INSERT INTO customer_ordering_schema (version) VALUES (?)').bind(2).all()
      throw new Error('D1_ERROR: disk I/O error: SQLITE_IOERR')
    })
    const error = await failureOf(() => new D1Store({ database: upgrading }).insert(makeRow(1)))
    expect([error.applied, error.message]).toEqual([undefined, expect.stringContaining('may or may not')])
  })

  it('one order makes three round trips', async () => {
    const statements: string[] = []
    const database = open((sql, when) => {
      if (when === 'before') statements.push(sql.split(' ')[0] ?? '')
    })
    await new D1Store({ database }).get(SCOPE, 'checks the tables')
    statements.splice(0)
    const { client } = shopOver(new D1Store({ database }))
    await client.orders.create(order('a'))
    await client.close()
    expect(statements).toEqual(['SELECT', 'INSERT', 'UPDATE'])
  })

  it('a write whose response is lost is unknown, and is found when it is read', async () => {
    const store = await openBroken((sql, when) => {
      if (when === 'after' && /^(INSERT|UPDATE)/.test(sql)) throw new Error('Network connection lost.')
    })
    const error = await failureOf(() => store.update(nextVersion(makeRow(1)), 1))
    expect([error.applied, error.message]).toEqual([undefined, expect.stringContaining('may or may not')])
    expect(await store.get(SCOPE, makeRow(1).id)).toEqual(nextVersion(makeRow(1)))
  })

  it.each(['before', 'after'] as const)('lost writes (%s they run) charge no order twice', async (moment) => {
    let writes = 0
    const database = open((sql, when) => {
      if (when === moment && /^(INSERT|UPDATE) /.test(sql) && ++writes % 3 === 0)
        throw new Error('D1_ERROR: Network connection lost.')
    })
    const sandbox = createSandbox()
    const clients = [1, 2].map(() => shopOver(new D1Store({ database }), sandbox).client)
    const references = Array.from({ length: 8 }, (_, index) => `order-${index + 1}`)
    const placed = new Set<string>()
    for (let round = 0; round < 6; round++)
      for (const externalOrderId of references.filter((reference) => !placed.has(reference)))
        await Promise.allSettled(
          clients.map(async (client) => {
            await client.orders.create(order(externalOrderId))
            placed.add(externalOrderId)
          }),
        )
    for (const reference of references) sandbox.expectChargedOnce(reference)
    for (const client of clients) await client.close()
  })
})
