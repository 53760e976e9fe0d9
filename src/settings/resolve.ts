import { bare } from '../defined.ts'
import { ConfigurationError } from '../errors/classes.ts'
import { Reporter } from '../hooks.ts'
import { sendOver } from '../http/attempt.ts'
import type { CallSettings, Connection } from '../http/call.ts'
import { CLOCK_SKEW } from '../http/deadline.ts'
import { kyTransport } from '../http/ky-transport.ts'
import { checkReference, normalizeServer } from '../identity/keys.ts'
import type { ClientOptions, Schemas } from '../options.ts'
import { platformRuntime, type Runtime } from '../runtime.ts'
import type { ListEnvelope } from '../schemas/list.ts'
import { MemoryStore } from '../stores/memory.ts'
import type { OrderStore } from '../stores/store.ts'
import { VERSION } from '../version.ts'
import { standardSchema } from './arguments.ts'
import { baseUrl, INSECURE, isInsecure } from './base-url.ts'
import { apiKey, credentialsOf, isBrowser, serverRuntime } from './credentials.ts'
import { habitOf } from './habits.ts'
import {
  callable,
  duration,
  fields,
  flag,
  headers,
  integer,
  oneOf,
  type Read,
  type Readers,
  readFields,
  text,
  withMethods,
} from './readers.ts'

export interface Settings<S extends Schemas> {
  /** The checked options and the store, from which `withOptions()` derives a client. */
  readonly options: Partial<ClientOptions<S>>
  readonly connection: Connection
  readonly defaults: CallSettings
  readonly schemas: Schemas
  readonly listEnvelope: ((body: unknown) => ListEnvelope) | undefined
  readonly store: OrderStore
  readonly server: string
  readonly account: string | undefined
  readonly codec: ClientOptions['codec']
  readonly safeRetryWindow: number
  readonly idempotencyScope: 'apiKey' | 'customer'
  readonly remember: 'order' | 'id'
  readonly retention: { readonly created: number; readonly rejected: number }
}

const BASE_URL = 'CUSTOMER_ORDERING_BASE_URL'

/** Milliseconds that a store may take between the claim of an order and its attempt. */
const STORE_TIME = 10_000
const DAY = 24 * 60 * 60 * 1000

/**
 * Trims white space, which may come from a file or an environment variable. Under a label with
 * white space, the client would not find the orders of the trimmed label. Nor would it under a label
 * that only looks the same.
 */
const label: Read<string> = (value, refuse) => {
  const trimmed = text(value, refuse).trim()
  const problem = checkReference(trimmed)
  return problem ? refuse(problem) : trimmed
}

const store: Read<OrderStore> = (value, refuse) => {
  const read = withMethods<OrderStore>('get', 'insert', 'update', 'listOpen', 'prune', 'list', 'close')
  const { durability } = read(value, refuse)
  oneOf('memory', 'device', 'server')(durability, (problem) => refuse(problem, 'durability'))
  return read(value, refuse)
}

const CLIENT: Readers<ClientOptions> = {
  baseUrl,
  allowInsecureHttp: flag,
  apiKey,
  account: label,
  store,
  server: label,
  timeout: duration,
  totalTimeout: duration,
  maxRetries: integer(0, 100),
  safeRetryWindow: duration,
  idempotencyScope: oneOf('apiKey', 'customer'),
  remember: oneOf('order', 'id'),
  retention: fields({ created: duration, rejected: duration }),
  codec: withMethods('encrypt', 'decrypt'),
  transport: withMethods('send'),
  fetch: callable(),
  defaultHeaders: headers,
  hooks: fields({
    onRequest: callable(),
    onResponse: callable(),
    onRetry: callable(),
    onSettled: callable(),
  }),
  logger: withMethods('debug', 'info', 'warn', 'error'),
  logLevel: oneOf('debug', 'info', 'warn', 'error', 'off'),
  schemas: fields({ order: standardSchema, service: standardSchema, balance: standardSchema }),
  listEnvelope: callable(),
  dangerouslyAllowBrowser: flag,
}

export function resolveSettings<S extends Schemas>(
  given: ClientOptions<S>,
  overrides: Partial<Runtime>,
): Settings<S> {
  const runtime: Runtime = Object.freeze({ ...platformRuntime, ...overrides })
  const read = readFields<ClientOptions>(given, CLIENT, refuseOption, habitOf)
  const address = read.baseUrl === undefined ? environment(BASE_URL, baseUrl) : String(read.baseUrl)
  if (address === undefined) refuseOption(`is missing: pass it or set ${BASE_URL}`, 'baseUrl')
  if (isInsecure(address) && read.allowInsecureHttp !== true) {
    const [refuse, name] = read.baseUrl === undefined ? [refuseVariable, BASE_URL] : [refuseOption, 'baseUrl']
    refuse(INSECURE, name)
  }
  const key = read.apiKey === undefined ? environment('CUSTOMER_ORDERING_API_KEY', apiKey) : read.apiKey
  if (key === undefined) {
    refuseOption(
      'is missing: pass it, set CUSTOMER_ORDERING_API_KEY, or pass null if a proxy adds the key',
      'apiKey',
    )
  }
  const {
    timeout = 30_000,
    totalTimeout = 120_000,
    maxRetries = 4,
    safeRetryWindow = 20 * 60 * 1000,
    idempotencyScope = 'apiKey',
    remember = 'order',
    logLevel = 'warn',
    store = new MemoryStore(),
    account,
    server,
    codec,
    listEnvelope,
  } = read
  if (typeof key === 'string' && read.dangerouslyAllowBrowser !== true && isBrowser()) {
    refuseOption(
      'must not be a string in a browser, where every visitor can read it: pass null and let your server add the key, or set dangerouslyAllowBrowser',
      'apiKey',
    )
  }
  if (read.transport !== undefined && read.fetch !== undefined)
    refuseOption('cannot be combined with the option fetch, which a transport ignores', 'transport')
  if (store.durability !== 'memory' && account === undefined) {
    refuseOption(
      "is required with a durable store: a label that never changes and that no other customer uses, such as 'example.com/shop-eu'",
      'account',
    )
  }
  // Without the option `server`, the keys of orders would depend on the address that the visitor
  // typed: the same order with and without www could be charged twice.
  if (store.durability !== 'memory' && server === undefined && isOriginOfPage(address)) {
    refuseOption(
      "is required with a durable store if baseUrl has the page's own origin, which may differ between visits: a label that never changes, such as 'https://api.example.com'",
      'server',
    )
  }
  const [limit, attempt] =
    timeout < totalTimeout ? ['timeout', timeout] : (['totalTimeout', totalTimeout] as const)
  if (attempt + CLOCK_SKEW > safeRetryWindow) {
    refuseOption(
      `of ${safeRetryWindow} leaves no room for one attempt. Set it to at least ${attempt + CLOCK_SKEW + STORE_TIME}` +
        ` (${limit} ${attempt}, ${CLOCK_SKEW} for the difference between clocks, and ${STORE_TIME} for the store), or lower ${limit}`,
      'safeRetryWindow',
    )
  }
  const { created = 400 * DAY, rejected = Math.max(7 * DAY, safeRetryWindow) } = read.retention ?? {}
  const tooShort = 'must not be less than safeRetryWindow'
  if (created < safeRetryWindow) refuseOption(tooShort, 'retention.created')
  // A write that the client stopped waiting for may still reach the store, which rejects the write
  // because of the closed record. If the record were pruned too early, the write would reopen the
  // order, and recovery would send it.
  if (rejected < safeRetryWindow) refuseOption(tooShort, 'retention.rejected')
  const transport = read.transport ?? kyTransport(read.fetch)
  const agent = serverRuntime() ? { 'user-agent': `customer-ordering-sdk/${VERSION}` } : {}
  return Object.freeze({
    // The cast is safe: the reader of `schemas` returns its value unchanged.
    options: Object.freeze(bare({ ...read, baseUrl: address, apiKey: key, store })) as Partial<
      ClientOptions<S>
    >,
    connection: Object.freeze({
      baseUrl: address,
      send: sendOver(transport, runtime),
      // Read after each response: fetch may be patched, and a service worker may take over the page,
      // while the client lives.
      get mayResend() {
        return transport.sendsOnce?.() !== true
      },
      credentials: credentialsOf(key),
      headers: Object.freeze({ ...agent, ...read.defaultHeaders }),
      runtime,
      reporter: new Reporter(read.hooks ?? Object.create(null), read.logger, logLevel),
    }),
    defaults: Object.freeze({ signal: undefined, timeout, totalTimeout, maxRetries, headers: NO_HEADERS }),
    schemas: read.schemas ?? Object.create(null),
    listEnvelope,
    store,
    server: server ?? normalizeServer(address),
    account,
    codec,
    safeRetryWindow,
    idempotencyScope,
    remember,
    retention: Object.freeze({ created, rejected }),
  })
}

function isOriginOfPage(address: string): boolean {
  return isBrowser() && new URL(address).origin === globalThis.location?.origin
}

const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({})

export function mergeOptions<S extends Schemas>(
  options: Partial<ClientOptions<Schemas>>,
  overrides: Partial<ClientOptions<S>>,
): ClientOptions<S> {
  const changes = readFields<ClientOptions>(overrides, CLIENT, refuseOption, habitOf)
  const { baseUrl: before } = options
  const { baseUrl: after } = changes
  const labelled = (changes.server ?? options.server ?? changes.store) !== undefined
  if (before !== undefined && after !== undefined && !labelled) {
    // Without a label of the service, the new client would not find remembered orders, and the next
    // call would buy them again under other keys.
    if (normalizeServer(String(before)) !== normalizeServer(String(after))) {
      refuseOption('cannot change unless the option server is set: orders could be bought again', 'baseUrl')
    }
  }
  const merged = Object.assign(Object.create(null), options, changes)
  // `fetch` and `transport` cannot be combined, so a new one drops the original client's other one.
  if (changes.transport !== undefined && changes.fetch === undefined) delete merged.fetch
  if (changes.fetch !== undefined && changes.transport === undefined) delete merged.transport
  return merged
}

function refuseVariable(problem: string, name: string): never {
  throw new ConfigurationError(`The environment variable ${name} ${problem}.`)
}

function refuseOption(problem: string, name?: string): never {
  const [what, example] = name === undefined ? ['options', ' such as { apiKey }'] : [`option ${name}`, '']
  throw new ConfigurationError(`Client ${what} ${problem}${example}.`)
}

function environment<T>(name: string, read: Read<T>): T | undefined {
  let value: string | undefined
  try {
    const { process } = globalThis as { process?: { env?: Readonly<Record<string, string>> } }
    const variables = process?.env ?? {}
    if (Object.hasOwn(variables, name)) value = variables[name]
  } catch {
    // Deno throws without permission to read the variable, which then counts as unset.
  }
  if (value === undefined || value === '') return undefined
  return read(value, (problem) => refuseVariable(problem, name))
}
