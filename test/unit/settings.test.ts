import { readFileSync } from 'node:fs'
import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { CustomerOrderingClient } from '../../src/client.ts'
import { ConfigurationError, InvalidRequestError } from '../../src/errors.ts'
import type { OrderStore } from '../../src/idempotency/store.ts'
import type { ClientOptions } from '../../src/options.ts'
import { callSettings, mergeOptions, readArguments, resolveSettings } from '../../src/settings.ts'
import { MemoryStore } from '../../src/stores/memory.ts'
import { VERSION } from '../../src/version.ts'

const KEY = 'sk_test_5ecretAPIkey'
const good = { baseUrl: 'https://api.example.com', apiKey: KEY }

/** Options of any shape, as an untyped program passes them. */
const resolve = (options: unknown) => resolveSettings(options as ClientOptions, {})
const messageOf = (action: () => unknown): string => {
  try {
    action()
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError)
    return (error as Error).message
  }
  return 'accepted'
}

beforeEach(() => {
  vi.stubEnv('CUSTOMER_ORDERING_BASE_URL', undefined)
  vi.stubEnv('CUSTOMER_ORDERING_API_KEY', undefined)
})
afterEach(() => {
  vi.unstubAllEnvs()
  vi.unstubAllGlobals()
})

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

/** Every option with values that are wrong and values that are right. */
const table: Record<keyof ClientOptions, { wrong: unknown[]; right: unknown[] }> = {
  baseUrl: {
    wrong: [
      '',
      'api.example.com',
      '/v1',
      'ftp://api.example.com',
      'http://api.example.com',
      'http://10.0.0.1',
      'http://localhost.example.com',
      'http://example.com/localhost',
      'http://notlocalhost',
      'http://[::2]',
      'https://user@api.example.com',
      'https://user:hunter2@api.example.com',
      'https://api.example.com/?a=1',
      'https://api.example.com/#top',
      'https://api.example.com?',
      'https://api.example.com#',
      'https://',
      5,
      null,
      {},
      { href: 5 },
      new URL('http://api.example.com'),
    ],
    right: [
      'https://api.example.com',
      new URL('https://api.example.com/base'),
      'https://api.example.com:8443/base//',
      'http://localhost:4010',
      'http://sandbox.localhost',
      'http://127.0.0.1:1',
      'http://127.9.9.9',
      'http://[::1]:4010',
    ],
  },
  allowInsecureHttp: { wrong: ['true', 1, null], right: [true, false] },
  apiKey: {
    wrong: [
      '',
      ' ',
      'a b',
      'a\tb',
      'a\nb',
      'a\n\n',
      '\na',
      'schlüssel',
      'a'.repeat(4097),
      5,
      true,
      {},
      ['a'],
      Symbol('a'),
    ],
    right: ['a', KEY, 'a'.repeat(4096), 'a\n', 'a\r\n', '!~', null, () => KEY, async () => KEY],
  },
  account: { wrong: notTexts, right: ['shop-eu', 'Läden', 'a b'] },
  store: {
    wrong: [
      'x',
      5,
      null,
      {},
      () => {},
      { ...new MemoryStore() },
      durable('disk'),
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
  safeRetryWindow: { wrong: notDurations, right: [1, 86_400_000] },
  idempotencyScope: { wrong: ['', 'apikey', 'user', 5, null, {}], right: ['apiKey', 'customer'] },
  remember: { wrong: ['', 'orders', 'none', true, null], right: ['order', 'id'] },
  retention: {
    wrong: [
      5,
      null,
      'x',
      [],
      { created: 0 },
      { created: 1_199_999 },
      { created: '1' },
      { rejected: -1 },
      { rejected: 1_199_999 },
      { rejected: Number.POSITIVE_INFINITY },
      { open: 1 },
      { Created: 1 },
    ],
    right: [
      {},
      { created: 1_200_000 },
      { rejected: 1_200_000 },
      { created: 1_200_000, rejected: 1_300_000 },
      { created: undefined },
    ],
  },
  codec: {
    wrong: [5, null, 'x', {}, { encrypt: () => '' }, { encrypt: 'x', decrypt: 'y' }, () => {}],
    right: [{ encrypt: (text: string) => text, decrypt: (text: string) => text }],
  },
  fetch: { wrong: notFunctions, right: [fetch, async () => new Response()] },
  defaultHeaders: {
    wrong: [
      5,
      null,
      'x',
      ['a', 'b'],
      new Headers({ a: 'b' }),
      new Map([['a', 'b']]),
      { 'a b': 'c' },
      { '': 'c' },
      { 'a:': 'c' },
      { ä: 'c' },
      { a: '' },
      { a: ' b' },
      { a: 'b ' },
      { a: 'b\r\nc: d' },
      { a: 'ü' },
      { a: 5 },
      { a: null },
      { a: undefined },
      { a: '1', A: '2' },
      ...[
        'authorization',
        'Authorization',
        'idempotency-key',
        'Idempotency-Key',
        'host',
        'connection',
        'content-type',
        'Content-Length',
        'content-encoding',
        'cookie',
        'transfer-encoding',
        'Accept',
      ].map((name) => ({ [name]: 'x' })),
    ],
    right: [
      {},
      { 'X-Team': 'shop' },
      { 'accept-language': 'de', 'user-agent': 'shop/1.0 (a b)' },
      Object.assign(Object.create(null), { a: 'b' }),
    ],
  },
  hooks: {
    wrong: [
      5,
      null,
      'x',
      () => {},
      { onRequest: 5 },
      { onResponse: null },
      { onRetry: 'x' },
      { onSettled: {} },
      { onrequest: () => {} },
      { before: () => {} },
    ],
    right: [
      {},
      { onRequest: () => {}, onResponse: () => {}, onRetry: () => {}, onSettled: () => {} },
      { onRetry: undefined },
    ],
  },
  logger: { wrong: [5, null, 'x', {}, { debug() {}, info() {}, warn() {} }, () => {}], right: [console] },
  logLevel: { wrong: ['', 'trace', 'WARN', 5, null], right: ['debug', 'info', 'warn', 'error', 'off'] },
  schemas: {
    wrong: [
      5,
      null,
      'x',
      schema,
      { order: {} },
      { order: null },
      { service: 5 },
      { balance: { '~standard': {} } },
      { orders: schema },
    ],
    right: [
      {},
      { order: schema, service: schema, balance: schema },
      { order: Object.assign(() => {}, schema) },
    ],
  },
  listEnvelope: { wrong: notFunctions, right: [() => ({ items: [] })] },
  dangerouslyAllowBrowser: { wrong: [0, 1, 'true', null, {}], right: [true, false] },
}

describe.each(Object.entries(table))('client option %s', (name, { wrong, right }) => {
  it.each(wrong.map((value) => [titleOf(value), value]))(
    'refuses %s and says which option is wrong',
    (_title, value) => {
      const message = messageOf(() => resolve({ ...good, [name]: value }))
      expect(message).toMatch(new RegExp(`^Client option ${name}(\\.[\\w~-]+)? (must|has|is) .+\\.$`))
      expect(message).not.toContain('hunter2')
    },
  )

  it.each(right.map((value) => [titleOf(value), value]))('accepts %s', (_title, value) => {
    expect(messageOf(() => resolve({ ...good, account: 'shop', [name]: value }))).toBe('accepted')
  })

  it('means its default when it is undefined', () => {
    vi.stubEnv('CUSTOMER_ORDERING_BASE_URL', 'https://api.example.com')
    vi.stubEnv('CUSTOMER_ORDERING_API_KEY', KEY)
    expect(messageOf(() => resolve({ ...good, [name]: undefined }))).toBe('accepted')
  })
})

describe('client options', () => {
  it.each([null, 5, 'https://api.example.com', [], [good]])('must be an object, not %j', (options) => {
    expect(messageOf(() => resolve(options))).toBe('Client options must be an object.')
  })

  it.each([
    ['baseURL', 'baseUrl'],
    ['base_url', 'baseUrl'],
    ['apikey', 'apiKey'],
    ['acount', 'account'],
    ['maxRetry', 'maxRetries'],
    ['timeOut', 'timeout'],
    ['totalTimeOut', 'totalTimeout'],
    ['header', undefined],
    ['stores', 'store'],
    ['loglevel', 'logLevel'],
    ['x', undefined],
    ['constructor', undefined],
    ['toString', undefined],
    ['dangerouslyAllowBrowsers', 'dangerouslyAllowBrowser'],
  ])('refuse the unknown name %s', (name, meant) => {
    const message = messageOf(() => resolve({ ...good, [name]: 1 }))
    expect(message).toContain(`Client option ${name} is not known`)
    expect(message.includes('did you mean')).toBe(meant !== undefined)
    if (meant !== undefined) expect(message).toContain(`did you mean ${meant}?`)
  })

  it('refuse __proto__ as a name', () => {
    const message = messageOf(() => resolve({ ...good, ...JSON.parse('{}'), ['__proto__']: { timeout: 1 } }))
    expect(message).toContain('__proto__ is not known')
  })

  it('have the documented defaults', () => {
    const settings = resolve(good)
    expect(settings.defaults).toEqual({ timeout: 30_000, totalTimeout: 120_000, maxRetries: 4, headers: {} })
    expect(settings).toMatchObject({
      safeRetryWindow: 20 * 60_000,
      idempotencyScope: 'apiKey',
      remember: 'order',
      retention: { created: 400 * 86_400_000, rejected: 7 * 86_400_000 },
      server: 'https://api.example.com',
    })
    expect(settings.account).toBeUndefined()
    expect(settings.codec).toBeUndefined()
    expect(settings.listEnvelope).toBeUndefined()
    expect(settings.store).toBeInstanceOf(MemoryStore)
  })

  it('are frozen in the end, and the object that was passed in is as it was', () => {
    const headers = { 'X-Team': 'a' }
    const options = { ...good, defaultHeaders: headers, retention: { created: 5e9 } }
    const before = structuredClone(options)
    const settings = resolve(options)
    expect(options).toEqual(before)
    headers['X-Team'] = 'b'
    options.retention.created = 6e9
    expect(settings.connection.headers['x-team']).toBe('a')
    expect(settings.retention).toEqual({ created: 5e9, rejected: 7 * 86_400_000 })
    for (const part of [
      settings,
      settings.options,
      settings.connection,
      settings.connection.headers,
      settings.defaults,
      settings.retention,
    ])
      expect(Object.isFrozen(part)).toBe(true)
  })

  it('refuse to forget closed orders within the safe-retry window, however it is set', () => {
    const window = 30 * 86_400_000
    const short = { ...good, safeRetryWindow: window, retention: { created: window - 1 } }
    expect(messageOf(() => resolve(short))).toContain(
      'retention.created must not be less than safeRetryWindow',
    )
    expect(messageOf(() => resolve({ ...good, safeRetryWindow: 401 * 86_400_000 }))).toContain(
      'retention.created',
    )
    expect(resolve({ ...short, retention: { created: window } }).retention).toEqual({
      created: window,
      rejected: window,
    })
    const soon = { ...short, retention: { rejected: window - 1 } }
    expect(messageOf(() => resolve(soon))).toContain(
      'retention.rejected must not be less than safeRetryWindow',
    )
  })

  it('are read once each', () => {
    const reads: string[] = []
    const options = {}
    for (const [name, value] of Object.entries({ ...good, timeout: 5, hooks: {} })) {
      Object.defineProperty(options, name, {
        enumerable: true,
        get: () => {
          reads.push(name)
          return value
        },
      })
    }
    resolve(options)
    expect(reads.sort()).toEqual(['apiKey', 'baseUrl', 'hooks', 'timeout'])
  })

  it('are not picked up from a polluted Object.prototype', () => {
    const evil = {
      timeout: 1,
      apiKey: 'evil',
      onRequest: () => {},
      order: schema,
      created: 1,
      fetch: () => {},
      account: 'x',
      signal: 5,
    }
    for (const [name, value] of Object.entries(evil)) {
      Object.defineProperty(Object.prototype, name, {
        value,
        configurable: true,
        writable: true,
        enumerable: true,
      })
    }
    try {
      expect(messageOf(() => resolve({ baseUrl: good.baseUrl }))).toContain('apiKey is missing')
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
})

describe('baseUrl', () => {
  it.each([
    ['https://api.example.com/', 'https://api.example.com'],
    ['https://API.example.com///', 'https://api.example.com'],
    ['https://api.example.com:443/x//', 'https://api.example.com/x'],
    ['https://api.example.com/a/../b', 'https://api.example.com/b'],
    ['http://127.1:80', 'http://127.0.0.1'],
    [' https://api.example.com ', 'https://api.example.com'],
    [new URL('https://api.example.com/base/'), 'https://api.example.com/base'],
  ])('%s becomes %s', (given, used) => {
    expect(resolve({ ...good, baseUrl: given }).connection.baseUrl).toBe(used)
  })

  it('comes from the environment where the option is absent, and only there', () => {
    vi.stubEnv('CUSTOMER_ORDERING_BASE_URL', 'https://env.example.com/')
    expect(resolve({ apiKey: KEY }).connection.baseUrl).toBe('https://env.example.com')
    expect(resolve(good).connection.baseUrl).toBe('https://api.example.com')
    expect(messageOf(() => resolve({ ...good, baseUrl: '' }))).toContain('Client option baseUrl must be')
  })

  it('is required, and the message says both ways to give it', () => {
    for (const empty of [undefined, '']) {
      vi.stubEnv('CUSTOMER_ORDERING_BASE_URL', empty)
      expect(messageOf(() => resolve({ apiKey: KEY }))).toBe(
        'Client option baseUrl is missing: pass it or set CUSTOMER_ORDERING_BASE_URL.',
      )
    }
  })

  it('out of the environment is blamed on the environment', () => {
    vi.stubEnv('CUSTOMER_ORDERING_BASE_URL', 'http://user:hunter2@api.example.com')
    const message = messageOf(() => resolve({ apiKey: KEY }))
    expect(message).toMatch(/^The environment variable CUSTOMER_ORDERING_BASE_URL must not hold a user name/)
    expect(message).not.toContain('hunter2')
  })

  const INSECURE =
    'must be an https address: over http, others could read the API key. Only localhost may be http; ' +
    'for a private network, such as docker-compose or a mesh, set allowInsecureHttp.'

  it('may be http on another machine only with allowInsecureHttp', () => {
    const baseUrl = 'http://sandbox:4010'
    expect(messageOf(() => resolve({ ...good, baseUrl }))).toBe(`Client option baseUrl ${INSECURE}`)
    expect(messageOf(() => resolve({ ...good, baseUrl, allowInsecureHttp: false }))).toContain('https')
    expect(resolve({ ...good, baseUrl, allowInsecureHttp: true }).connection.baseUrl).toBe(baseUrl)
    vi.stubEnv('CUSTOMER_ORDERING_BASE_URL', baseUrl)
    expect(messageOf(() => resolve({ apiKey: KEY }))).toBe(
      `The environment variable CUSTOMER_ORDERING_BASE_URL ${INSECURE}`,
    )
    expect(resolve({ apiKey: KEY, allowInsecureHttp: true }).connection.baseUrl).toBe(baseUrl)
  })

  it('cannot become http by withOptions() either', () => {
    const client = new CustomerOrderingClient(good)
    const changed = { baseUrl: new URL('http://sandbox:4010'), server: 'sandbox' }
    expect(() => client.withOptions(changed)).toThrow(INSECURE)
    expect(client.withOptions({ ...changed, allowInsecureHttp: true }).toJSON().baseUrl).toBe(
      'http://sandbox:4010',
    )
  })
})

describe('apiKey', () => {
  const keyOf = (apiKey: unknown) => resolve({ ...good, apiKey }).connection.credentials

  it('is trimmed by one line break at its end', () => {
    expect(keyOf(`${KEY}\n`).get()).toBe(KEY)
    expect(keyOf(`${KEY}\r\n`).get()).toBe(KEY)
    expect(keyOf(null).get()).toBeNull()
    expect(keyOf(KEY).rotates).toBe(false)
    expect(keyOf(null).rotates).toBe(false)
  })

  it('comes from the environment where the option is absent; null is not absent', () => {
    vi.stubEnv('CUSTOMER_ORDERING_API_KEY', `${KEY}\n`)
    const { baseUrl } = good
    expect(resolve({ baseUrl }).connection.credentials.get()).toBe(KEY)
    expect(resolve({ baseUrl, apiKey: null }).connection.credentials.get()).toBeNull()
    vi.stubEnv('CUSTOMER_ORDERING_API_KEY', 'not a key')
    expect(messageOf(() => resolve({ baseUrl }))).toMatch(
      /^The environment variable CUSTOMER_ORDERING_API_KEY must be/,
    )
  })

  it('is required, and the message says every way to give it', () => {
    expect(messageOf(() => resolve({ baseUrl: good.baseUrl }))).toBe(
      'Client option apiKey is missing: pass it, set CUSTOMER_ORDERING_API_KEY, or pass null if a proxy adds it.',
    )
  })

  it('is missing, and no more than that, where the environment may not be read', () => {
    const forbidden = {
      get env(): never {
        throw new Error('Requires env access')
      },
    }
    vi.stubGlobal('process', forbidden)
    expect(messageOf(() => resolve({ baseUrl: good.baseUrl }))).toContain('apiKey is missing')
    vi.stubGlobal('process', undefined)
    expect(messageOf(() => resolve({ baseUrl: good.baseUrl }))).toContain('apiKey is missing')
  })

  it('may be a function, which is asked anew and checked each time', async () => {
    const keys: unknown[] = ['a', `${KEY}\n`, 'no key', 5, undefined, null, '']
    const credentials = keyOf(() => keys.shift())
    expect(credentials.rotates).toBe(true)
    expect(await credentials.get()).toBe('a')
    expect(await credentials.get()).toBe(KEY)
    for (let rest = keys.length; rest > 0; rest--) {
      await expect((async () => credentials.get())()).rejects.toThrow(ConfigurationError)
    }
  })

  it('may be an async function, which is checked all the same', async () => {
    expect(await keyOf(async () => `${KEY}\n`).get()).toBe(KEY)
    await expect(keyOf(async () => 'no key').get()).rejects.toThrow(
      'What the apiKey function returned must be',
    )
    await expect(keyOf(async () => undefined).get()).rejects.toThrow(ConfigurationError)
  })

  it('is in no message about it', async () => {
    const secret = 'geheim mit leerzeichen'
    expect(messageOf(() => resolve({ ...good, apiKey: secret }))).not.toContain('geheim')
    const error: unknown = await (async () => keyOf(() => secret).get())().catch((reason: unknown) => reason)
    expect(inspect(error)).not.toContain('geheim')
  })

  it('is not shown by anything that prints a client', () => {
    const client = new CustomerOrderingClient({
      ...good,
      defaultHeaders: { 'x-secret': 'another-5ecret' },
      account: 'shop',
    })
    const derived = client.withOptions({ timeout: 5 })
    for (const shown of [
      client,
      derived,
      client.orders,
      client.services,
      client.balance,
      client.orders.list(),
    ]) {
      const views = [
        inspect(shown, { showHidden: true, depth: null, getters: true }),
        // A list that was not read is refused as JSON.
        'then' in shown ? '' : JSON.stringify(shown),
        String(shown),
      ]
      for (const view of views) {
        expect(view).not.toContain(KEY)
        expect(view).not.toContain('another-5ecret')
      }
    }
    expect(JSON.parse(JSON.stringify(client))).toEqual({ baseUrl: good.baseUrl, account: 'shop' })
    expect(JSON.parse(JSON.stringify(new CustomerOrderingClient(good)))).toEqual({ baseUrl: good.baseUrl })
  })
})

describe('a literal API key in a browser', () => {
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
  }

  it('is refused in a page', () => {
    page()
    expect(messageOf(() => resolve(good))).toContain('apiKey must not be a literal in a browser')
    vi.stubEnv('CUSTOMER_ORDERING_API_KEY', KEY)
    expect(messageOf(() => resolve({ baseUrl: good.baseUrl }))).toContain('must not be a literal')
    expect(messageOf(() => resolve({ ...good, dangerouslyAllowBrowser: false }))).toContain(
      'must not be a literal',
    )
  })

  it('is refused in a web worker', () => {
    worker()
    expect(messageOf(() => resolve(good))).toContain('must not be a literal')
  })

  it.each([
    ['a window without a document', () => vi.stubGlobal('window', {})],
    ['a Cloudflare worker', () => worker('Cloudflare-Workers')],
    [
      'a Deno worker',
      () => {
        worker()
        vi.stubGlobal('Deno', {})
      },
    ],
    ['a runtime that only has the class', () => vi.stubGlobal('WorkerGlobalScope', class {})],
  ])('is accepted in %s', (_title, stub) => {
    stub()
    expect(messageOf(() => resolve(good))).toBe('accepted')
  })

  it('is accepted with dangerouslyAllowBrowser; functions and null always are', () => {
    page()
    expect(messageOf(() => resolve({ ...good, dangerouslyAllowBrowser: true }))).toBe('accepted')
    expect(messageOf(() => resolve({ ...good, apiKey: () => KEY }))).toBe('accepted')
    expect(messageOf(() => resolve({ ...good, apiKey: null }))).toBe('accepted')
  })
})

describe('headers', () => {
  it('have lower-case names', () => {
    const { headers } = resolve({
      ...good,
      defaultHeaders: { 'X-Team': 'Shop', 'User-Agent': 'mine/1' },
    }).connection
    expect(headers).toMatchObject({ 'x-team': 'Shop', 'user-agent': 'mine/1' })
  })

  it('name the package under Node, Bun and Deno, and nothing in a browser', () => {
    const agent = () => resolve({ ...good, apiKey: null }).connection.headers['user-agent']
    expect(agent()).toBe(`customer-ordering-sdk/${VERSION}`)
    vi.stubGlobal('process', undefined)
    expect(agent()).toBeUndefined()
    vi.stubGlobal('Deno', {})
    expect(agent()).toBe(`customer-ordering-sdk/${VERSION}`)
  })

  it('name the version of package.json', () => {
    const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
    expect(manifest).toMatchObject({ name: 'customer-ordering-sdk', version: VERSION })
  })

  it('named __proto__ are headers like others', () => {
    const given = JSON.parse('{"__proto__":"x"}')
    const { headers } = readArguments.call({ headers: given })
    expect(Object.entries(headers ?? {})).toEqual([['__proto__', 'x']])
  })
})

describe('a message about a likely slip', () => {
  const client = new CustomerOrderingClient(good)

  it('says of waitFor(id, { status }) how to wait for a status', async () => {
    await expect(client.orders.waitFor('ord_1', { status: 'done' } as never)).rejects.toThrow(
      "status is not an option: write until: (order) => order.status === 'done'. Nothing was sent.",
    )
  })

  it("says of apiKey: 'Bearer …' that the client adds the word, and shows no key", () => {
    for (const apiKey of ['Bearer s3cret', 'bearer s3cret']) {
      expect(messageOf(() => resolve({ ...good, apiKey }))).toBe(
        "Client option apiKey must be the key alone, without 'Bearer': the client adds that.",
      )
    }
  })

  it('is short however deep the value is nested that it is about', async () => {
    let deep: unknown = 1n
    for (let i = 0; i < 400; i++) deep = [deep]
    const order = { serviceId: 's', target: 't', quantity: 1, deep }
    const ending = client.orders.create(order)
    await expect(ending).rejects.toThrow(/deep(\[0\])+\[?0?…: /)
    await expect(ending).rejects.toSatisfy(({ message }) => message.length < 400)
  })
})

describe('an option of a call where its parameters belong', () => {
  const client = new CustomerOrderingClient(good)
  const signal = AbortSignal.abort()
  const refusal = (call: () => unknown): unknown => {
    expect(call).toThrow(InvalidRequestError)
    try {
      return call()
    } catch (error) {
      return String(error)
    }
  }
  it.each<[string, () => unknown, string]>([
    ['services.list', () => client.services.list({ signal } as never), 'list({ limit: 50 }, { signal })'],
    ['orders.list', () => client.orders.list({ signal } as never), 'list({ limit: 50 }, { signal })'],
    ['orders.reconcile', () => client.orders.reconcile({ signal } as never), 'reconcile({}, { signal })'],
  ])('is refused by %s, which says where it belongs', (_name, call, example) => {
    expect(refusal(call)).toBe(
      `InvalidRequestError: signal is an option of the call, which goes into its last argument: ${example}. Nothing was sent.`,
    )
  })

  it('is refused whichever option it is', () => {
    for (const name of ['timeout', 'totalTimeout', 'maxRetries', 'headers', 'prefetch'])
      expect(refusal(() => client.orders.list({ [name]: 1 } as never))).toContain(
        'goes into its last argument',
      )
  })
})

describe('account and server', () => {
  it('lose the white space around them, which would name other orders', () => {
    expect(resolve({ ...good, account: ' shop\n', server: '\tlive ' })).toMatchObject({
      account: 'shop',
      server: 'live',
    })
  })

  it.each(['device', 'server'])('requires account with a store of durability %s', (durability) => {
    const message = messageOf(() => resolve({ ...good, store: durable(durability) }))
    expect(message).toMatch(/^Client option account is required with a store that outlives the process/)
    expect(messageOf(() => resolve({ ...good, store: durable(durability), account: 'shop' }))).toBe(
      'accepted',
    )
  })

  it('requires server in a page whose own origin is the address and whose store outlives it', () => {
    vi.stubGlobal('window', globalThis)
    vi.stubGlobal('document', {})
    vi.stubGlobal('location', { origin: 'https://shop.example.com' })
    const options = { apiKey: null, account: 'shop', baseUrl: 'https://shop.example.com/api' }
    const store = durable('device')
    expect(messageOf(() => resolve({ ...options, store }))).toBe(
      "Client option server is required with a store that outlives the page and a baseUrl of the page's own origin: " +
        'opened by another address, such as one with www, the page would buy the same order again under another key. ' +
        "Set it to a label of the service that never changes, such as 'https://api.example.com'.",
    )
    for (const accepted of [
      { ...options, store, server: 'https://api.example.com' },
      { ...options, store, baseUrl: 'https://api.example.com' },
      { ...options, store: durable('memory') },
      options,
    ])
      expect(messageOf(() => resolve(accepted))).toBe('accepted')
    vi.stubGlobal('location', undefined)
    expect(messageOf(() => resolve({ ...options, store }))).toBe('accepted')
    vi.unstubAllGlobals()
    expect(messageOf(() => resolve({ ...options, store }))).toBe('accepted')
  })

  it('takes the normal spelling of baseUrl as the label of the service', () => {
    expect(resolve({ ...good, baseUrl: 'https://API.example.com.:443/%7ebase/' }).server).toBe(
      'https://api.example.com/~base',
    )
    expect(resolve({ ...good, server: 'production' }).server).toBe('production')
  })
})

describe('options for a derived client', () => {
  it('take over everything that is not changed, and what was read from the environment', () => {
    vi.stubEnv('CUSTOMER_ORDERING_API_KEY', KEY)
    const first = resolve({ baseUrl: good.baseUrl, timeout: 5, defaultHeaders: { a: '1' }, account: 'shop' })
    vi.stubEnv('CUSTOMER_ORDERING_API_KEY', 'another')
    const second = resolve(mergeOptions(first.options, { maxRetries: 0, timeout: undefined } as object))
    expect(second.connection.credentials.get()).toBe(KEY)
    expect(second.defaults).toEqual({ ...first.defaults, maxRetries: 0 })
    expect(second.connection.headers).toEqual(first.connection.headers)
    expect(second.store).toBe(first.store)
    expect(second.account).toBe('shop')
  })

  it('are checked like the first', () => {
    const { options } = resolve(good)
    expect(messageOf(() => mergeOptions(options, { timeout: -1 }))).toContain('timeout must be')
    expect(messageOf(() => mergeOptions(options, { timeoot: 1 } as object))).toContain(
      'did you mean timeout?',
    )
    expect(messageOf(() => resolve(mergeOptions(options, { store: durable('device') })))).toContain(
      'account is required',
    )
  })
})

describe('options of calls', () => {
  const { signal } = new AbortController()
  const wrong: [keyof typeof readArguments, unknown, path: string][] = [
    ['call', null, ''],
    ['call', 5, ''],
    ['call', [], ''],
    ...notDurations.map((timeout): [keyof typeof readArguments, unknown, string] => [
      'call',
      { timeout },
      'timeout',
    ]),
    ...notDurations.map((totalTimeout): [keyof typeof readArguments, unknown, string] => [
      'call',
      { totalTimeout },
      'totalTimeout',
    ]),
    ...[-1, 0.5, 101, '4', null].map((maxRetries): [keyof typeof readArguments, unknown, string] => [
      'call',
      { maxRetries },
      'maxRetries',
    ]),
    ...[5, null, {}, new AbortController(), 'x', { aborted: false }].map(
      (value): [keyof typeof readArguments, unknown, string] => ['call', { signal: value }, 'signal'],
    ),
    ['call', { headers: new Headers() }, 'headers'],
    ['call', { headers: { Cookie: 'a=b' } }, 'headers.Cookie'],
    ['call', { idempotencyKey: 'k' }, 'idempotencyKey'],
    ['create', { idempotencyKey: '' }, 'idempotencyKey'],
    ['create', { idempotencyKey: 'a b' }, 'idempotencyKey'],
    ['create', { idempotencyKey: 'k'.repeat(256) }, 'idempotencyKey'],
    ['create', { idempotencyKey: 5 }, 'idempotencyKey'],
    ['create', { allowDuplicate: 'yes' }, 'allowDuplicate'],
    ['create', { service: 'svc_1' }, 'service'],
    ['create', { service: null }, 'service'],
    ['waitFor', { until: 'done' }, 'until'],
    ['recover', { replay: 'none' }, 'replay'],
    ['recover', { takeOver: 1 }, 'takeOver'],
    ...[0, -1, 1.5, '10', null, Number.NaN, 2 ** 53].map(
      (limit): [keyof typeof readArguments, unknown, string] => ['list', { limit }, 'limit'],
    ),
    ...[-1, 1.5, '10', null, Number.NaN, 2 ** 53].map(
      (offset): [keyof typeof readArguments, unknown, string] => ['list', { offset }, 'offset'],
    ),
    ['list', { sourceSystem: 'x' }, 'sourceSystem'],
    ['list', { signal }, 'signal'],
    ...notTexts.map((sourceSystem): [keyof typeof readArguments, unknown, string] => [
      'listOrders',
      { sourceSystem },
      'sourceSystem',
    ]),
    ['reconcile', { since: '2020' }, 'since'],
    ['reconcile', { since: new Date() }, 'since'],
    ['reconcile', { limit: 5 }, 'limit'],
  ]
  it.each(wrong.map(([name, value, path]) => [name, titleOf(value), path, value] as const))(
    '%s refuses %s with an issue at "%s"',
    (name, _title, path, value) => {
      let error: unknown
      try {
        readArguments[name](value)
      } catch (thrown) {
        error = thrown
      }
      expect(error).toBeInstanceOf(InvalidRequestError)
      expect(error).toMatchObject({
        charged: 'no',
        attempts: 0,
        issues: [{ path, message: expect.any(String) }],
      })
      expect((error as Error).message).toContain('Nothing was sent.')
    },
  )

  it('suggest the nearest known name', () => {
    expect(() => readArguments.create({ idempotencykey: 'k' })).toThrow('did you mean idempotencyKey?')
    expect(() => readArguments.list({ ofset: 5 })).toThrow('did you mean offset?')
  })

  it('are optional, and undefined is absent', () => {
    expect({ ...readArguments.call(undefined) }).toEqual({})
    expect({ ...readArguments.call({ signal: undefined, timeout: undefined }) }).toEqual({})
    expect({ ...readArguments.list(undefined) }).toEqual({})
  })

  it("go over the client's", () => {
    const { defaults } = resolve({ ...good, timeout: 1, totalTimeout: 2, maxRetries: 3 })
    expect(
      callSettings(defaults, readArguments.call({ signal, maxRetries: 0, headers: { 'X-A': 'b' } })),
    ).toEqual({ signal, timeout: 1, totalTimeout: 2, maxRetries: 0, headers: { 'x-a': 'b' } })
  })

  it('take a signal of another realm', () => {
    const foreign = { aborted: false, addEventListener() {}, removeEventListener() {} }
    expect(readArguments.call({ signal: foreign }).signal).toBe(foreign)
  })
})
