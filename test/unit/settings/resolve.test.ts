import { inspect } from 'node:util'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { CustomerOrderingClient } from '../../../src/client.ts'
import { defined } from '../../../src/defined.ts'
import { ConfigurationError, InvalidRequestError } from '../../../src/errors/classes.ts'
import type { ClientOptions } from '../../../src/options.ts'
import { callSettings, readArguments } from '../../../src/settings/arguments.ts'
import { mergeOptions, resolveSettings } from '../../../src/settings/resolve.ts'
import { MemoryStore } from '../../../src/stores/memory.ts'
import type { OrderStore } from '../../../src/stores/store.ts'
import { VERSION } from '../../../src/version.ts'
import { throwing } from '../../support/calls.ts'

const [BASE_URL, API_KEY] = ['CUSTOMER_ORDERING_BASE_URL', 'CUSTOMER_ORDERING_API_KEY']
const KEY = 'sk_test_5ecretAPIkey'
const good = { baseUrl: 'https://api.example.com', apiKey: KEY }

/** Options of any shape, as an untyped program passes them. */
const resolve = (options: unknown) => resolveSettings(options as ClientOptions, {})
/** The message with which the action is rejected, or `accepted`. */
const messageOf = (action: () => unknown): string => {
  try {
    action()
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError)
    return (error as Error).message
  }
  return 'accepted'
}

const refusalOf = (options: unknown): string => messageOf(() => resolve(options))

beforeEach(() => {
  vi.stubEnv(BASE_URL, undefined)
  vi.stubEnv(API_KEY, undefined)
})
afterEach(() => {
  vi.unstubAllEnvs()
  vi.unstubAllGlobals()
})

/** The words of a text, for test cases that are single words. */
const words = (text: string): string[] => text.trim().split(/\s+/)
/** Objects with one field, for each of these values. */
const each = (name: string, ...values: unknown[]): object[] => values.map((value) => ({ [name]: value }))
const titleOf = (value: unknown): string =>
  inspect(value, { breakLength: Number.POSITIVE_INFINITY }).slice(0, 60)

const durable = (durability: string): OrderStore =>
  Object.assign(new MemoryStore(), { durability }) as OrderStore

const notDurations = [0, -1, Number.NaN, Number.POSITIVE_INFINITY, '30000', true, null, {}, 5n]
const notTexts = ['', '   ', '\n', '\ud800', 5, null, {}, ['a'], true]
const notFunctions = ['x', 5, null, {}, true]
const schema = {
  '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) },
} as const

const table: Record<keyof ClientOptions, { wrong: unknown[]; right: unknown[] }> = {
  baseUrl: {
    wrong: [
      ...words(`
        api.example.com /v1 ftp://api.example.com http://api.example.com http://10.0.0.1
        http://localhost.example.com http://example.com/localhost http://notlocalhost http://[::2]
        https://user@api.example.com https://user:hunter2@api.example.com https://api.example.com/?a=1
        https://api.example.com/#top https://api.example.com? https://api.example.com# https://
        https://api.example.com/v1/`),
      ...['', 5, null, {}, { href: 5 }, new URL('http://api.example.com')],
    ],
    right: [
      new URL('https://api.example.com/base'),
      ...words(`
        https://api.example.com https://api.example.com:8443/base// http://localhost:4010
        http://sandbox.localhost http://127.0.0.1:1 http://127.9.9.9 http://[::1]:4010`),
    ],
  },
  allowInsecureHttp: { wrong: ['true', 1, null], right: [true, false] },
  apiKey: {
    wrong: [
      ...['', ' ', 'a b', 'a\tb', 'a\nb', 'a\n\n', '\na', 'schlüssel', 'a'.repeat(4097)],
      ...[5, true, {}, ['a'], Symbol('a')],
    ],
    right: ['a', KEY, 'a'.repeat(4096), 'a\n', 'a\r\n', '!~', null, () => KEY, async () => KEY],
  },
  account: { wrong: [...notTexts, 'shop\u200b', 'a\tb'], right: ['shop-eu', 'Läden', 'a b'] },
  store: {
    wrong: [
      ...['x', 5, null, {}, () => {}, { ...new MemoryStore() }, durable('disk')],
      Object.assign(new MemoryStore(), { prune: 5 }),
    ],
    right: [new MemoryStore()],
  },
  server: { wrong: notTexts, right: ['production', 'https://api.example.com'] },
  timeout: { wrong: notDurations, right: [1, 0.5, 30_000, 2 ** 40] },
  totalTimeout: { wrong: notDurations, right: [1, 120_000, Number.MAX_SAFE_INTEGER] },
  maxRetries: {
    wrong: [-1, 0.5, 101, Number.NaN, Number.POSITIVE_INFINITY, '4', null, true, 4n],
    right: [0, 4, 100],
  },
  safeRetryWindow: { wrong: [...notDurations, 1, 59_999], right: [60_000, 86_400_000] },
  idempotencyScope: { wrong: ['', 'apikey', 'user', 5, null, {}], right: ['apiKey', 'customer'] },
  remember: { wrong: ['', 'orders', 'none', true, null], right: ['order', 'id'] },
  retention: {
    wrong: [
      ...[5, null, 'x', []],
      ...each('created', 0, 1_199_999, '1'),
      ...each('rejected', -1, 1_199_999, Number.POSITIVE_INFINITY),
      ...[{ open: 1 }, { Created: 1 }],
    ],
    right: [
      ...[{}, { rejected: 1_200_000 }, { created: 1_200_000, rejected: 1_300_000 }],
      ...each('created', 1_200_000, undefined),
    ],
  },
  codec: {
    wrong: [5, null, 'x', {}, { encrypt: () => '' }, { encrypt: 'x', decrypt: 'y' }, () => {}],
    right: [{ encrypt: (text: string) => text, decrypt: (text: string) => text }],
  },
  transport: {
    wrong: [5, null, 'x', fetch, {}, { send: 'x' }, { close: () => {} }],
    right: [{ send: () => Promise.reject(new Error('nothing is sent')) }],
  },
  fetch: { wrong: notFunctions, right: [fetch, async () => new Response()] },
  defaultHeaders: {
    wrong: [
      ...[5, null, 'x', ['a', 'b'], new Headers({ a: 'b' }), new Map([['a', 'b']])],
      ...['a b', '', 'a:', 'ä'].map((name) => ({ [name]: 'c' })),
      ...each('a', '', ' b', 'b ', 'b\r\nc: d', 'ü', 5, null, undefined),
      { a: '1', A: '2' },
      ...words(`
        authorization Idempotency-Key If-Api-Key-Tag host connection keep-alive upgrade Expect content-type
        Content-Length content-encoding cookie transfer-encoding Accept`).map((name) => ({ [name]: 'x' })),
    ],
    right: [
      ...[{}, { 'X-Team': 'shop' }, { 'accept-language': 'de', 'user-agent': 'shop/1.0 (a b)' }],
      ...[Object.assign(Object.create(null), { a: 'b' }), runInNewContext('({ a: "b" })')],
    ],
  },
  hooks: {
    wrong: [
      ...[5, null, 'x', () => {}, Object.create({ onSettled: () => {} })],
      ...[{ onRequest: 5 }, { onResponse: null }, { onRetry: 'x' }, { onSettled: {} }],
      ...[{ onrequest: () => {} }, { before: () => {} }],
    ],
    right: [
      ...[{}, { onRetry: undefined }],
      { onRequest: () => {}, onResponse: () => {}, onRetry: () => {}, onSettled: () => {} },
    ],
  },
  logger: { wrong: [5, null, 'x', {}, { debug() {}, info() {}, warn() {} }, () => {}], right: [console] },
  logLevel: { wrong: ['', 'trace', 'WARN', 5, null], right: ['debug', 'info', 'warn', 'error', 'off'] },
  schemas: {
    wrong: [
      ...[5, null, 'x', schema, { orders: schema }],
      ...[{ order: {} }, { order: null }, { service: 5 }, { balance: { '~standard': {} } }],
    ],
    right: [
      ...[{}, { order: Object.assign(() => {}, schema) }],
      { order: schema, service: schema, balance: schema },
    ],
  },
  listEnvelope: { wrong: notFunctions, right: [() => ({ items: [] })] },
  dangerouslyAllowBrowser: { wrong: [0, 1, 'true', null, {}], right: [true, false] },
}

describe.each(Object.entries(table))('client option %s', (name, { wrong, right }) => {
  it.each(wrong.map((value) => [titleOf(value), value]))('the option rejects %s and is named', (_, value) => {
    const message = refusalOf({ ...good, [name]: value })
    expect(message).toMatch(new RegExp(`^Client option ${name}(\\.[\\w~-]+)? .+\\.$`))
    expect(message).not.toContain('hunter2')
  })

  it.each(right.map((value) => [titleOf(value), value]))('the option accepts %s', (_title, value) => {
    expect(refusalOf({ ...good, account: 'shop', [name]: value })).toBe('accepted')
  })

  it('an undefined option means its default', () => {
    vi.stubEnv(BASE_URL, 'https://api.example.com')
    vi.stubEnv(API_KEY, KEY)
    expect(refusalOf({ ...good, [name]: undefined })).toBe('accepted')
  })
})

it('client options must be an object', () => {
  for (const options of [null, 'https://api.example.com', [good], Object.assign(Object.create({}), good)])
    expect(refusalOf(options)).not.toBe('accepted')
})

it.each([
  ...words(`
      acount:account timeOut:timeout loglevel:logLevel x constructor toString __proto__
      dangerouslyAllowBrowsers:dangerouslyAllowBrowser`).map((pair) => pair.split(':')),
])('client options reject the unknown name %s', (name = '', meant) => {
  const message = refusalOf({ ...good, [name]: 1 })
  expect(message).toContain(`option ${name} `)
  expect(/\((?:.* )?(\w+)\?\)/.exec(message)?.[1]).toBe(meant)
})

it('client options have the documented defaults', () => {
  const settings = resolve(good)
  expect(settings.defaults).toEqual({ timeout: 30_000, totalTimeout: 120_000, maxRetries: 4, headers: {} })
  expect(settings).toMatchObject({
    safeRetryWindow: 20 * 60_000,
    idempotencyScope: 'apiKey',
    remember: 'order',
    retention: { created: 400 * 86_400_000, rejected: 7 * 86_400_000 },
    server: 'https://api.example.com',
  })
  for (const absent of ['account', 'codec', 'listEnvelope'] as const) expect(settings[absent]).toBeUndefined()
  expect(settings.store).toBeInstanceOf(MemoryStore)
})

it('resolved options are frozen, and the given object is unchanged', () => {
  const headers = { 'X-Team': 'a' }
  const options = { ...good, defaultHeaders: headers, retention: { created: 5e9 } }
  const before = structuredClone(options)
  const settings = resolve(options)
  expect(options).toEqual(before)
  headers['X-Team'] = 'b'
  options.retention.created = 6e9
  expect(settings.connection.headers).toMatchObject({ 'x-team': 'a' })
  expect(settings.retention).toEqual({ created: 5e9, rejected: 7 * 86_400_000 })
  const { options: own, connection, defaults, retention } = settings
  for (const part of [settings, own, connection, connection.headers, defaults, retention])
    expect(Object.isFrozen(part)).toBe(true)
})

it.each([
  ['timeout', 20_000, { timeout: 20_000 }],
  ['totalTimeout', 5_000, { totalTimeout: 5_000 }],
])('a safe-retry window without room for one attempt (%s) is refused', (name, time, limits) => {
  const least = time + 30_000
  const refused = refusalOf({ ...good, ...limits, safeRetryWindow: least - 1 })
  for (const named of ['safeRetryWindow', String(least + 10_000), name]) expect(refused).toContain(named)
  expect(refusalOf({ ...good, ...limits, safeRetryWindow: least })).toBe('accepted')
})

it('closed orders cannot be forgotten within the safe-retry window, however it is set', () => {
  const window = 30 * 86_400_000
  const messageFor = (retention: object, safeRetryWindow = window): string =>
    refusalOf({ ...good, safeRetryWindow, retention })
  for (const name of ['created', 'rejected'])
    expect(messageFor({ [name]: window - 1 })).toMatch(new RegExp(`retention.${name} .* safeRetryWindow`))
  expect(messageFor({}, 401 * 86_400_000)).toContain('retention.created')
  const { retention } = resolve({ ...good, safeRetryWindow: window, retention: { created: window } })
  expect(retention).toEqual({ created: window, rejected: window })
})

it('each client option is read once', () => {
  const reads: string[] = []
  const options = {}
  for (const [name, value] of Object.entries({ ...good, timeout: 5, hooks: {} })) {
    const get = (): unknown => (reads.push(name) > 0 ? value : undefined)
    Object.defineProperty(options, name, { enumerable: true, get })
  }
  resolve(options)
  expect(reads.sort()).toEqual(['apiKey', 'baseUrl', 'hooks', 'timeout'])
})

it('client options are not read from a polluted Object.prototype', () => {
  const texts = { apiKey: 'evil', account: 'x' }
  const functions = { onRequest: () => {}, fetch: () => {} }
  const evil = { ...texts, ...functions, timeout: 1, order: schema, created: 1, signal: 5 }
  Object.assign(Object.prototype, evil)
  try {
    expect(refusalOf({ baseUrl: good.baseUrl })).toMatch(/option apiKey .*CUSTOMER_ORDERING_API_KEY/)
    const settings = resolve({ ...good, hooks: {}, schemas: {}, retention: {} })
    expect(settings.defaults.timeout).toBe(30_000)
    expect(settings.account).toBeUndefined()
    expect(settings.retention.created).toBe(400 * 86_400_000)
    expect(settings.schemas.order).toBeUndefined()
    expect(callSettings(settings.defaults, readArguments.call({}))).toMatchObject({ timeout: 30_000 })
    expect(Object.hasOwn(readArguments.create({}), 'signal')).toBe(false)
    expect(readArguments.create({}).signal).toBeUndefined()
  } finally {
    for (const name of Object.keys(evil)) Reflect.deleteProperty(Object.prototype, name)
  }
})

it.each([
  ['https://api.example.com/', 'https://api.example.com'],
  ['https://API.example.com///', 'https://api.example.com'],
  ['https://api.example.com:443/x//', 'https://api.example.com/x'],
  ['https://api.example.com/a/../b', 'https://api.example.com/b'],
  ['http://127.1:80', 'http://127.0.0.1'],
  [' https://api.example.com ', 'https://api.example.com'],
  [new URL('https://api.example.com/base/'), 'https://api.example.com/base'],
])('the baseUrl %s becomes %s', (given, used) => {
  expect(resolve({ ...good, baseUrl: given }).connection.baseUrl).toBe(used)
})

it('baseUrl comes from the environment if the option is absent, and only then', () => {
  vi.stubEnv(BASE_URL, 'https://env.example.com/')
  expect(resolve({ apiKey: KEY }).connection.baseUrl).toBe('https://env.example.com')
  expect(resolve(good).connection.baseUrl).toBe('https://api.example.com')
  expect(refusalOf({ ...good, baseUrl: '' })).toContain('Client option baseUrl must be')
  vi.stubEnv(BASE_URL, 'http://user:hunter2@api.example.com')
  expect(refusalOf({ apiKey: KEY })).toContain(BASE_URL)
  expect(refusalOf({ apiKey: KEY })).not.toContain('hunter2')
})

it('baseUrl may be http on another machine only with allowInsecureHttp', () => {
  const baseUrl = 'http://sandbox:4010'
  expect(refusalOf({ ...good, baseUrl })).toContain('option baseUrl')
  expect(refusalOf({ ...good, baseUrl, allowInsecureHttp: false })).toContain('https')
  expect(resolve({ ...good, baseUrl, allowInsecureHttp: true }).connection.baseUrl).toBe(baseUrl)
  vi.stubEnv(BASE_URL, baseUrl)
  expect(refusalOf({ apiKey: KEY })).toContain(BASE_URL)
  expect(resolve({ apiKey: KEY, allowInsecureHttp: true }).connection.baseUrl).toBe(baseUrl)
})

describe('apiKey', () => {
  const keyOf = (apiKey: unknown) => resolve({ ...good, apiKey }).connection.credentials

  it('apiKey comes from the environment if the option is absent, and null is not absent', () => {
    vi.stubEnv(API_KEY, `${KEY}\n`)
    const { baseUrl } = good
    expect(resolve({ baseUrl }).connection.credentials.get()).toBe(KEY)
    expect(resolve({ baseUrl, apiKey: null }).connection.credentials.get()).toBeNull()
    vi.stubEnv(API_KEY, 'not a key')
    expect(refusalOf({ baseUrl })).toContain('CUSTOMER_ORDERING_API_KEY')
  })

  it('apiKey is reported as missing if the environment may not be read', () => {
    const env = { get: throwing('Requires env access') }
    for (const process of [Object.defineProperty({}, 'env', env), undefined]) {
      vi.stubGlobal('process', process)
      expect(refusalOf({ baseUrl: good.baseUrl })).toMatch(/option apiKey .*CUSTOMER_ORDERING_API_KEY/)
    }
  })

  it('apiKey may be a function, sync or async, which is called and checked each time', async () => {
    for (const literal of [keyOf(`${KEY}\r\n`), keyOf(null)]) expect(literal.rotates).toBe(false)
    const keys: unknown[] = []
    const credentials = [() => keys.shift(), async () => keys.shift()].map(keyOf)
    for (const { rotates, get } of credentials) {
      expect(rotates).toBe(true)
      keys.splice(0, keys.length, 'a', `${KEY}\n`, 'no key', 5, undefined, null, '')
      expect([await get(), await get()]).toEqual(['a', KEY])
      while (keys.length > 0) await expect((async () => get())()).rejects.toThrow(ConfigurationError)
    }
  })

  it('a client is printed as its address and account, without its headers', () => {
    const defaultHeaders = { 'x-secret': 'another-5ecret' }
    const client = new CustomerOrderingClient({ ...good, defaultHeaders, account: 'shop' })
    for (const shown of [client, client.withOptions({ timeout: 5 }), client.orders, client.orders.list()])
      expect(inspect(shown, { showHidden: true, depth: null, getters: true })).not.toMatch(/5ecret/)
    expect(JSON.parse(JSON.stringify(client))).toEqual({ baseUrl: good.baseUrl, account: 'shop' })
    expect(JSON.parse(JSON.stringify(new CustomerOrderingClient(good)))).toEqual({ baseUrl: good.baseUrl })
  })
})

const page = (): void => {
  vi.stubGlobal('window', {})
  vi.stubGlobal('document', {})
}
const worker = (userAgent = 'Mozilla/5.0'): void => {
  const Scope = function WorkerGlobalScope(): void {}
  Object.defineProperty(Scope, Symbol.hasInstance, { value: (value: unknown) => value === globalThis })
  vi.stubGlobal('WorkerGlobalScope', Scope)
  vi.stubGlobal('process', undefined)
  vi.stubGlobal('navigator', { userAgent })
  if (userAgent === 'Deno') vi.stubGlobal('Deno', {})
}

const rejected = 'dangerouslyAllowBrowser'
it.each([
  [rejected, 'a page', page, {}],
  [rejected, 'a page', page, { dangerouslyAllowBrowser: false }],
  [rejected, 'a page', page, { apiKey: undefined }],
  [rejected, 'a web worker', worker, {}],
  [rejected, 'a web worker', worker, { dangerouslyAllowBrowser: false }],
  ['accepted', 'a page', page, { dangerouslyAllowBrowser: true }],
  ['accepted', 'a page', page, { apiKey: () => KEY }],
  ['accepted', 'a page', page, { apiKey: null }],
  ['accepted', 'a window without a document', () => vi.stubGlobal('window', {}), {}],
  ['accepted', 'a Cloudflare worker', () => worker('Cloudflare-Workers'), {}],
  ['accepted', 'a Deno worker', () => worker('Deno'), {}],
  ['accepted', 'a runtime with the class alone', () => vi.stubGlobal('WorkerGlobalScope', class {}), {}],
])('%s: a literal API key in %s', (expected, _where, stub, options) => {
  vi.stubEnv(API_KEY, KEY)
  stub()
  expect(refusalOf({ ...good, ...options })).toContain(expected)
})

it('headers name the package on Node, Bun and Deno, and nothing in a browser', () => {
  const agent = () => resolve({ ...good, apiKey: null }).connection.headers['user-agent']
  expect(agent()).toBe(`customer-ordering-sdk/${VERSION}`)
  vi.stubGlobal('process', undefined)
  expect(agent()).toBeUndefined()
  vi.stubGlobal('Deno', {})
  expect(agent()).toBe(`customer-ordering-sdk/${VERSION}`)
})

it('a header named __proto__ is an ordinary header', () => {
  const given = JSON.parse('{"__proto__":"x"}')
  const { headers } = readArguments.call({ headers: given })
  expect(Object.entries(headers ?? {})).toEqual([['__proto__', 'x']])
})

it('the message about a request is short even for a deeply nested value', async () => {
  let deep: unknown = 1n
  for (let i = 0; i < 400; i++) deep = [deep]
  const order = { serviceId: 's', target: 't', quantity: 1, deep }
  const ending = new CustomerOrderingClient(good).orders.create(order)
  await expect(ending).rejects.toSatisfy(({ message }) => message.length < 400)
})

const { orders, services } = new CustomerOrderingClient(good)
it.each<[string, (misplaced: never) => unknown]>([
  ['services.list', (misplaced) => services.list(misplaced)],
  ['orders.list', (misplaced) => orders.list(misplaced)],
  ['orders.reconcile', (misplaced) => orders.reconcile(misplaced)],
])('%s rejects an option among its parameters, and the error states where it belongs', (method, call) => {
  const names = ['signal', 'timeout', 'totalTimeout', 'maxRetries', 'headers']
  for (const name of method === 'orders.reconcile' ? names : [...names, 'prefetch']) {
    const misplaced = () => call({ [name]: 1 } as never)
    expect(misplaced).toThrow(InvalidRequestError)
    expect(misplaced).toThrow(name)
  }
})

it('account and server lose white space around them, and server is the normalized baseUrl by default', () => {
  const trimmed = { account: 'shop', server: 'live' }
  expect(resolve({ ...good, account: ' shop\n', server: '\tlive ' })).toMatchObject(trimmed)
  const spelled = { ...good, baseUrl: 'https://API.example.com.:443/%7ebase/' }
  expect(resolve(spelled).server).toBe('https://api.example.com/~base')
})

it.each(['device', 'server'])('account is required with a store of durability %s', (durability) => {
  const options = { ...good, store: durable(durability) }
  expect(refusalOf(options)).toContain('option account ')
  expect(refusalOf({ ...options, account: 'shop' })).toBe('accepted')
})

it('server is required in a page whose own origin is the address and whose store outlives it', () => {
  vi.stubGlobal('window', globalThis)
  vi.stubGlobal('document', {})
  vi.stubGlobal('location', { origin: 'https://shop.example.com' })
  const options = { apiKey: null, account: 'shop', baseUrl: 'https://shop.example.com/api' }
  const store = durable('device')
  expect(refusalOf({ ...options, store })).toContain('option server is required')
  for (const accepted of [
    { ...options, store, server: 'https://api.example.com' },
    { ...options, store, baseUrl: 'https://api.example.com' },
    { ...options, store: durable('memory') },
    options,
  ])
    expect(refusalOf(accepted)).toBe('accepted')
  vi.stubGlobal('location', undefined)
  expect(refusalOf({ ...options, store })).toBe('accepted')
  vi.unstubAllGlobals()
  expect(refusalOf({ ...options, store })).toBe('accepted')
})

it('derived options keep everything unchanged, including values from the environment', () => {
  vi.stubEnv(API_KEY, KEY)
  const first = resolve({ baseUrl: good.baseUrl, timeout: 5, defaultHeaders: { a: '1' }, account: 'shop' })
  vi.stubEnv(API_KEY, 'another')
  const second = resolve(mergeOptions(first.options, { maxRetries: 0, timeout: undefined } as object))
  expect(second.connection.credentials.get()).toBe(KEY)
  expect(second.defaults).toEqual({ ...first.defaults, maxRetries: 0 })
  expect(second.connection.headers).toEqual(first.connection.headers)
  expect(second.store).toBe(first.store)
  expect(second.account).toBe('shop')
})

it('a derived client sends with the later of transport and fetch, and never with both', () => {
  const sender = { transport: { send: () => Promise.reject(new Error('nothing is sent')) } }
  const caller = { fetch: async () => new Response() }
  expect(refusalOf({ ...good, ...sender, ...caller })).toMatch(/transport .* fetch/)
  for (const [first, then] of [
    [sender, caller],
    [caller, sender],
  ] as const) {
    const { fetch, transport } = resolve(mergeOptions(resolve({ ...good, ...first }).options, then)).options
    expect({ ...defined({ fetch, transport }) }).toEqual(then)
  }
  const { options } = resolve({ ...good, ...sender })
  expect(mergeOptions(options, { timeout: 5 }).transport).toBe(sender.transport)
  expect(messageOf(() => resolve(mergeOptions(options, { ...sender, ...caller })))).toContain('fetch')
})

it('derived options are checked like the original options', () => {
  const { options } = resolve(good)
  expect(messageOf(() => mergeOptions(options, { timeout: -1 }))).toContain('timeout')
  const misspelt = messageOf(() => mergeOptions(options, { timeoot: 1 } as object))
  expect(misspelt).toContain(' timeout?')
  const durably = mergeOptions(options, { store: durable('device') })
  expect(refusalOf(durably)).toContain('account ')
})

describe('options of calls', () => {
  /** By reader and field, the rejected values. */
  const wrong: Partial<Record<keyof typeof readArguments, Record<string, unknown[]>>> = {
    call: {
      timeout: notDurations,
      totalTimeout: notDurations,
      maxRetries: [-1, 0.5, 101, '4', null],
      signal: [5, null, {}, new AbortController(), 'x', { aborted: false }],
      headers: [new Headers()],
      idempotencyKey: ['k'],
    },
    create: { idempotencyKey: ['', 'a b', 'k'.repeat(256), 5], allowDuplicate: ['yes'] },
    createMany: { concurrency: [0, 1.5], onProgress: ['x'] },
    waitFor: { until: ['done'] },
    recover: { concurrency: [0, 1.5], takeOver: [1] },
    list: {
      limit: [0, -1, 1.5, '10', null, Number.NaN, 2 ** 53],
      offset: [-1, 1.5, '10', null, Number.NaN, 2 ** 53],
      sourceSystem: ['x'],
      signal: [new AbortController().signal],
    },
    listOrders: { sourceSystem: notTexts },
    reconcile: { since: ['2020', new Date()], limit: [5] },
  }
  const cases = Object.entries(wrong).flatMap(([reader, fields]) =>
    Object.entries(fields).flatMap(([path, values]) =>
      each(path, ...values).map((value) => [reader, titleOf(value), path, value] as const),
    ),
  )
  it.each<readonly [reader: string, title: string, path: string, value: unknown]>([
    ...[null, 5, [], new AbortController()].map((value) => ['call', titleOf(value), '', value] as const),
    ['call', 'a cookie', 'headers.Cookie', { headers: { Cookie: 'a=b' } }],
    ...cases,
  ])('%s rejects %s with an issue at "%s"', (reader, _title, path, value) => {
    const call = () => readArguments[reader as keyof typeof readArguments](value)
    expect(call).toThrow(InvalidRequestError)
    expect(call).toThrow('Nothing was sent.')
    const issues = [{ path, message: expect.any(String) }]
    expect(call).toThrow(expect.objectContaining({ charged: 'no', attempts: 0, issues }))
  })

  it('options of calls are optional, undefined means absent, and errors suggest the nearest name', () => {
    expect({ ...readArguments.call(undefined) }).toEqual({})
    expect({ ...readArguments.call({ signal: undefined, timeout: undefined }) }).toEqual({})
    expect({ ...readArguments.list(undefined) }).toEqual({})
    expect(() => readArguments.create({ idempotencykey: 'k' })).toThrow(' idempotencyKey?')
    expect(() => readArguments.list({ ofset: 5 })).toThrow(' offset?')
  })

  it("options of calls override the client's, and accept a signal of another realm", () => {
    const { defaults } = resolve({ ...good, timeout: 1, totalTimeout: 2, maxRetries: 3 })
    const signal = { aborted: false, addEventListener() {}, removeEventListener() {} }
    const given = readArguments.call({ signal, maxRetries: 0, headers: { 'X-A': 'b' } })
    const settings = { timeout: 1, totalTimeout: 2, maxRetries: 0, headers: { 'x-a': 'b' } }
    expect(callSettings(defaults, given)).toEqual({ signal, ...settings })
    expect(() => readArguments.call({ signal: { ...signal, removeEventListener: 1 } })).toThrow('AbortSignal')
  })
})
