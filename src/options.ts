import type { Hooks, Logger, LogLevel } from './hooks.ts'
import type { Transport } from './http/transport.ts'
import type { Balance } from './schemas/balance.ts'
import type { ListEnvelope } from './schemas/list.ts'
import type { Order } from './schemas/order.ts'
import type { Service } from './schemas/service.ts'
import type { StandardSchemaV1 } from './schemas/standard-schema.ts'
import type { OrderStore } from './stores/store.ts'

/**
 * Encrypts and decrypts stored data.
 *
 * Each call to the codec may take up to ten seconds, but must end within 450 ms after the deadline
 * of the client's call.
 */
export interface Codec {
  /**
   * Returns a non-empty string without lone surrogates, such as base64.
   *
   * If it returns anything else or throws before an order is sent, the order is not sent. A thrown
   * error becomes the `cause` of the `StoreError` unchanged, so it must not contain secrets.
   */
  encrypt(text: string): string | Promise<string>
  /** Returns the string that `encrypt` was called with. Must throw if it cannot decrypt `text`. */
  decrypt(text: string): string | Promise<string>
}

/**
 * Your schemas for fields that the API document does not show, from any library that supports
 * Standard Schema (zod, valibot, arktype, …).
 *
 * Each schema runs after the built-in check, on the same data. Methods return the schema's output,
 * with its type. Zod's `z.object` removes fields that it does not name; `z.looseObject` keeps them.
 *
 * TypeScript must see which schema is used. If it is optional, or the options have the plain type
 * {@link ClientOptions}, methods have the built-in type, such as `Order`, although the schema runs.
 */
export interface Schemas {
  /** For `orders.create`, `createMany`, `retrieve`, `list`, `waitFor`, `recover`, `reconcile`. */
  readonly order?: StandardSchemaV1 | undefined
  /** For `services.list` and `retrieve`. */
  readonly service?: StandardSchemaV1 | undefined
  /** For `balance.retrieve`. */
  readonly balance?: StandardSchemaV1 | undefined
}

/** Return type of the order methods of a client with these schemas. */
export type OrderOf<S extends Schemas> = OutputOf<S, 'order', Order>

/** Return type of the service methods of a client with these schemas. */
export type ServiceOf<S extends Schemas> = OutputOf<S, 'service', Service>

/** Return type of `balance.retrieve` of a client with these schemas. */
export type BalanceOf<S extends Schemas> = OutputOf<S, 'balance', Balance>

type OutputOf<S extends Schemas, Name extends keyof Schemas, Default> =
  S extends Readonly<Record<Name, infer Schema extends StandardSchemaV1>>
    ? StandardSchemaV1.InferOutput<Schema>
    : Default

/**
 * An API key, a sync or async function that returns one, or null if a proxy adds the Authorization
 * header.
 *
 * The function is called before every request, so it can read a secret manager that rotates keys.
 * Cache slow reads inside the function. After a 401, the client calls the function once more and
 * repeats the request. A key has 1 to 4096 visible ASCII characters. A line break at the end, as in
 * most files, is removed.
 */
export type ApiKey = string | (() => string | Promise<string>) | null

/** How long settled orders are remembered, in milliseconds. */
export interface Retention {
  /**
   * Retention of created orders.
   *
   * During this time, `create()` with the same reference or key returns the remembered order. After
   * this time, the same call may place and charge the order again. Must be at least
   * {@link ClientOptions.safeRetryWindow}. Default 400 days (34,560,000,000).
   */
  readonly created?: number | undefined
  /**
   * Retention of refused, cancelled and abandoned orders.
   *
   * Must be at least {@link ClientOptions.safeRetryWindow}. Default 7 days (604,800,000), or that
   * window if longer.
   */
  readonly rejected?: number | undefined
}

/**
 * Options of the client, read once by its constructor.
 *
 * `undefined` means the default. An unknown name is an error: a misspelt `acount` would silently
 * switch off the protection that `account` gives.
 */
export interface ClientOptions<S extends Schemas = Schemas> {
  /**
   * Address of the service without the final `/v1`, for example `https://api.example.com`.
   *
   * It must be https, except for this machine or with {@link ClientOptions.allowInsecureHttp}, and
   * may have a path, but no user name, query or fragment. Required, here or as the environment
   * variable `CUSTOMER_ORDERING_BASE_URL`.
   */
  readonly baseUrl?: string | URL | undefined

  /**
   * True to accept an http address of another machine, although anyone on the network path can read
   * the API key: only for private networks.
   *
   * Default false.
   */
  readonly allowInsecureHttp?: boolean | undefined

  /**
   * The API key, or a function that returns it.
   *
   * A key belongs on a server: in a page or web worker, a string is an error (see
   * {@link ClientOptions.dangerouslyAllowBrowser}). Required, here or as the environment variable
   * `CUSTOMER_ORDERING_API_KEY`.
   *
   * @example
   * apiKey: () => secrets.read('ordering-api-key')
   */
  readonly apiKey?: ApiKey | undefined

  /**
   * Label of the customer account that the API key acts for, for example `example.com/shop-eu`.
   *
   * Choose it once and never change it: orders are remembered for each label. With
   * {@link ClientOptions.server}, it also determines the Idempotency-Key of an order with a
   * reference, so a process that has lost the record sends the same key again.
   *
   * Two accounts must never share a label, not even accounts of different companies. Include your
   * domain. A control character, or an invisible one at an end, is refused. Required with a store that
   * outlives the process. Default: none, and keys are random.
   */
  readonly account?: string | undefined

  /**
   * The store that remembers orders.
   *
   * The default prevents double charges from retries and concurrent calls in this process. A
   * durable store, such as `customer-ordering-sdk/stores/sqlite`, also prevents them after a crash.
   * Default: a new `MemoryStore`.
   */
  readonly store?: OrderStore | undefined

  /**
   * Label of the service, for remembered orders and computed keys.
   *
   * Set it if the service has several addresses, or moves: the client finds open orders only under
   * the label with which they were stored. Sandbox and production must never share a label. The label
   * is used as it is: two spellings of one address are two labels.
   * Default: the normalised `baseUrl`. Required in a page with a durable store if `baseUrl` has the
   * page's own origin.
   */
  readonly server?: string | undefined

  /**
   * Milliseconds for one attempt, up to the last byte of the response.
   *
   * An attempt never gets more time than is left of {@link ClientOptions.totalTimeout}. Default
   * 30,000.
   */
  readonly timeout?: number | undefined

  /**
   * Milliseconds for a whole call with all attempts and waits.
   *
   * In lists, this limit applies to each page. Default 120,000.
   */
  readonly totalTimeout?: number | undefined

  /**
   * Maximum number of retries of a call, 0 to 100.
   *
   * Retries of `orders.create` are safe: they send the same key. They use exponential backoff with
   * full jitter and honour `Retry-After`. Polls and replays with the same key do not count. Default
   * 4.
   */
  readonly maxRetries?: number | undefined

  /**
   * Rarely needed: milliseconds from the first send of an Idempotency-Key during which it may be
   * sent again.
   *
   * Widen it once your provider confirms how long it remembers keys: a forgotten key would charge a
   * second time. Past the window, orders are only looked up. It must have room for one attempt and
   * 30 seconds for the difference between clocks. Default 1,200,000 (20 minutes).
   */
  readonly safeRetryWindow?: number | undefined

  /**
   * Rarely needed: which API keys share Idempotency-Keys at the service.
   *
   * `'apiKey'`: none, so an ambiguous order is sent again only under the API key that sent it.
   * `'customer'`: all of a customer, so it may be sent again after a key rotation. Set `'customer'`
   * only if your provider confirms it. Default `'apiKey'`.
   */
  readonly idempotencyScope?: 'apiKey' | 'customer' | undefined

  /**
   * Rarely needed: how much of a created order is stored, all or only `id`, `status` and `amount`.
   *
   * `create()` returns a remembered order with only the stored fields. Default `'order'`.
   */
  readonly remember?: 'order' | 'id' | undefined

  /**
   * Rarely needed: minimum time for which settled orders are remembered.
   *
   * The client removes an order only when newer orders prove that enough time has passed, because
   * the clock may be wrong. Orders without a known outcome are never removed.
   */
  readonly retention?: Retention | undefined

  /**
   * Rarely needed: encrypts stored data, except row ids, states and times, by which the store
   * searches.
   *
   * Rows stored without a codec are read as they are, and encrypted when they next change. Default:
   * none.
   */
  readonly codec?: Codec | undefined

  /**
   * How requests are sent, for example `undiciTransport()` from `customer-ordering-sdk/undici`.
   *
   * You own the transport: closing the client leaves it open. Default: the global `fetch`.
   */
  readonly transport?: Transport | undefined

  /**
   * Replaces the global `fetch`, for example in tests, with the sandbox, or for tracing.
   *
   * It must send each POST once and never retry, because a hidden retry may be charged. Its
   * failures never prove that nothing was sent. Cannot be combined with `transport`. Default: the
   * global `fetch`, read at each request.
   */
  readonly fetch?: typeof fetch | undefined

  /**
   * Headers that the client adds to every request: trimmed, printable ASCII.
   *
   * These names are rejected: `Authorization`, `Idempotency-Key`, `If-Api-Key-Tag`, `Accept`,
   * `Content-*`, `Cookie`, `Host`, `Connection`, `Keep-Alive`, `Transfer-Encoding`, `Upgrade` and
   * `Expect`.
   */
  readonly defaultHeaders?: Readonly<Record<string, string>> | undefined

  /** Functions called for every request, response, retry and outcome. They cannot change a call. */
  readonly hooks?: Hooks | undefined

  /**
   * Destination of log lines.
   *
   * Lines contain references and Idempotency-Keys, but no header, body or API key. Default: none,
   * so nothing is logged.
   */
  readonly logger?: Logger | undefined

  /**
   * Least severe level that is logged.
   *
   * Default `'warn'`, which logs orders that need attention or whose outcome is unknown or not
   * stored, and hooks that throw.
   */
  readonly logLevel?: LogLevel | undefined

  /**
   * Your own schemas for orders, services and balances. They determine the methods' return types.
   * @example
   * schemas: { order: z.looseObject({ id: z.string(), status: z.enum(['queued', 'done']) }) }
   */
  readonly schemas?: S | undefined

  /**
   * Rarely needed: finds the items of a list response.
   *
   * The API document does not show the envelope. Default: the response itself if it is an array,
   * otherwise the array of items in it.
   * @example
   * listEnvelope: (body) => ({ items: body.payload.rows, total: body.payload.count })
   */
  readonly listEnvelope?: ((body: unknown) => ListEnvelope) | undefined

  /**
   * True to accept an API key given as a string in a page or web worker, where every visitor can
   * read it and spend the money in the wallet: only for internal tools.
   *
   * Default false.
   */
  readonly dangerouslyAllowBrowser?: boolean | undefined
}
