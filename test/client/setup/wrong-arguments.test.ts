import * as sdk from 'customer-ordering-sdk'
import {
  type ClientOptions,
  CustomerOrderingClient,
  type CustomerOrderingError,
  isCustomerOrderingError,
  type RawRequest,
} from 'customer-ordering-sdk'
import { MysqlStore } from 'customer-ordering-sdk/stores/mysql'
import { PostgresStore } from 'customer-ordering-sdk/stores/postgres'
import { RedisStore } from 'customer-ordering-sdk/stores/redis'
import { SqliteStore } from 'customer-ordering-sdk/stores/sqlite'
import { describe, expect, test } from 'vitest'
import { METHODS_OF_RESOURCES } from '../../../src/settings/habits.ts'
import { all } from '../../support/calls.ts'
import { Lab, order } from '../../support/lab.ts'

/** Values that callers without a type checker may pass. */
const GARBAGE: Readonly<Record<string, unknown>> = {
  undefined: undefined,
  null: null,
  true: true,
  zero: 0,
  'not a number': Number.NaN,
  'a big integer': 1n,
  'an empty text': '',
  'a text': 'garbage',
  'a symbol': Symbol('garbage'),
  'an empty object': {},
  'an object without a prototype': Object.create(null),
  'an object with unknown fields': { garbage: null },
  'an empty array': [],
  'an array': [null],
  'a function': () => undefined,
  'a date': new Date(Number.NaN),
  'a map': new Map(),
  'a rejected promise': Object.assign(Promise.reject(new Error('garbage')), { garbage: true }),
}
;(GARBAGE['a rejected promise'] as Promise<unknown>).catch(() => {})

const as = <T>(garbage: unknown): T => garbage as T

const client = (): CustomerOrderingClient => new Lab().client()
const request = order('r1')

/** Every public function, called with garbage for each argument. */
const CALLS: Readonly<Record<string, (garbage: unknown) => unknown>> = {
  'new CustomerOrderingClient(…)': (it) => new CustomerOrderingClient(as<ClientOptions>(it)),
  'orders.create(…)': (it) => client().orders.create(as(it)),
  'orders.create(request, …)': (it) => client().orders.create(request, as(it)),
  'orders.create({ …request, metadata: … })': (it) =>
    client().orders.create({ ...request, metadata: as(it) }),
  'orders.createMany(…)': (it) => all(client().orders.createMany(as(it))),
  'orders.createMany([…])': (it) => all(client().orders.createMany([as(it)])),
  'orders.createMany([], …)': (it) => all(client().orders.createMany([], as(it))),
  'orders.retrieve(…)': (it) => client().orders.retrieve(as(it)),
  'orders.retrieve(id, …)': (it) => client().orders.retrieve('ord_1', as(it)),
  'orders.list(…)': (it) => client().orders.list(as(it)),
  'orders.list({}, …)': (it) => client().orders.list({}, as(it)),
  'list().toArray(…)': (it) => client().orders.list().toArray(as(it)),
  'orders.waitFor(…)': (it) => client().orders.waitFor(as(it), { until: () => true }),
  'orders.waitFor(id, …)': (it) => client().orders.waitFor('ord_1', as(it)),
  'orders.remembered(…)': (it) => all(client().orders.remembered(as(it))),
  'orders.recover(…)': (it) => all(client().orders.recover(as(it))),
  'orders.resolve(…)': (it) => client().orders.resolve(as(it), { as: 'abandoned' }),
  'orders.resolve(name, …)': (it) => client().orders.resolve({ externalOrderId: 'r' }, as(it)),
  'orders.resolve(name, resolution, …)': (it) =>
    client().orders.resolve({ externalOrderId: 'r' }, { as: 'abandoned' }, as(it)),
  'orders.forget(…)': (it) => client().orders.forget(as(it)),
  'orders.reconcile(…)': (it) => all(client().orders.reconcile(as(it))),
  'orders.reconcile({}, …)': (it) => all(client().orders.reconcile({}, as(it))),
  'services.list(…)': (it) => client().services.list(as(it)),
  'services.list({}, …)': (it) => client().services.list({}, as(it)),
  'services.retrieve(…)': (it) => client().services.retrieve(as(it)),
  'services.retrieve(id, …)': (it) => client().services.retrieve('x', as(it)),
  'balance.retrieve(…)': (it) => client().balance.retrieve(as(it)),
  'request(…)': (it) => client().request(as<RawRequest>(it)),
  'request(request, …)': (it) => client().request({ method: 'GET', path: '/x' }, as(it)),
  'withOptions(…)': (it) => client().withOptions(as<ClientOptions>(it)),
  'formatAmount(…)': (it) => sdk.formatAmount(as(it)),
  'formatAmount({ amount: … })': (it) => sdk.formatAmount({ amount: as(it), currency: 'EUR' }),
  'formatAmount({ currency: … })': (it) => sdk.formatAmount({ amount: 1, currency: as(it) }),
  'formatAmount(money, …)': (it) => sdk.formatAmount({ amount: 1, currency: 'EUR' }, as(it)),
  'checkQuantity(…, 1)': (it) => sdk.checkQuantity(as(it), 1),
  'checkQuantity(service, …)': (it) =>
    sdk.checkQuantity({ minQuantity: 1, maxQuantity: 2, stepQuantity: 1 }, as(it)),
  'checkQuantity with garbage for rules': (it) =>
    sdk.checkQuantity({ minQuantity: as(it), maxQuantity: as(it), stepQuantity: as(it) }, 1),
  'responseInfo(…)': (it) => sdk.responseInfo(it),
  'isCustomerOrderingError(…)': (it) => isCustomerOrderingError(it),
  'suggestedStatus(…)': (it) => sdk.suggestedStatus(it),
  'aesGcm(…)': (it) => sdk.aesGcm(as(it)),
  'new SqliteStore(…)': (it) => new SqliteStore(as(it)),
  'new SqliteStore({ path: … })': (it) => it !== 'garbage' && new SqliteStore({ path: as(it) }),
  'new RedisStore(…)': (it) => new RedisStore(as(it)),
  'new RedisStore({ client: … })': (it) => new RedisStore({ client: as(it) }),
  'new PostgresStore(…)': (it) => new PostgresStore(as(it)),
  'new PostgresStore({ client: … })': (it) => new PostgresStore({ client: as(it) }),
  'new MysqlStore(…)': (it) => new MysqlStore(as(it)),
  'new MysqlStore({ client: … })': (it) => new MysqlStore({ client: as(it) }),
}

describe.each(Object.entries(CALLS))('%s', (_call, call) => {
  test.each(Object.entries(GARBAGE))('the call accepts %s, or rejects it with our error', async (_, it) => {
    let error: unknown
    try {
      await call(it)
      return
    } catch (caught) {
      error = caught
    }
    expect(isCustomerOrderingError(error), String((error as Error)?.stack)).toBe(true)
    const { message, charged } = error as CustomerOrderingError
    expect(message).toMatch(/[.]$/)
    expect(message).not.toMatch(/of undefined|\[object|Cannot read|not a function|\.\.|\?\./)
    expect(charged).toBe('no')
  })
})

test('the table contains every public function', () => {
  const untested = Object.entries(sdk)
    .filter(([name, value]) => typeof value === 'function' && !/Error$/.test(name))
    .map(([name]) => name)
    .filter((name) => !Object.keys(CALLS).some((call) => call.includes(`${name}(`)))
  expect(untested).toEqual(
    ['MemoryStore', 'isCustomerOrderingError'].filter((name) => untested.includes(name)),
  )
  const methods = [client(), client().orders, client().services, client().balance].flatMap((part) =>
    Object.getOwnPropertyNames(Object.getPrototypeOf(part)),
  )
  const missing = methods
    .filter((name) => !Object.hasOwn(METHODS_OF_RESOURCES, name))
    .filter((name) => !Object.keys(CALLS).some((call) => call.includes(`${name}(`)))
  expect(missing.sort()).toEqual([
    ...['close', 'constructor', 'constructor', 'constructor', 'constructor', 'toJSON'],
    ...['unresolved'],
  ])
})
