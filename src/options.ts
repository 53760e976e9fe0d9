import type { Hooks, Logger, LogLevel } from './hooks.ts'
import type { Transport } from './http/transport.ts'
import type { Balance } from './schemas/balance.ts'
import type { ListEnvelope } from './schemas/list.ts'
import type { CreateOrderRequest, Order } from './schemas/order.ts'
import type { Service } from './schemas/service.ts'
import type { StandardSchemaV1 } from './schemas/standard-schema.ts'
import type { OrderOutbox, OrderStore } from './stores/store.ts'

/**
 * Encrypts and decrypts what is at rest. Each may take ten seconds, but no more than 450 ms past the end of the call.
 * `decrypt` must throw for a text that it cannot open.
 */
export interface Codec {
  /**
   * Returns a well-formed text that is not empty, such as base64; otherwise, or if it throws, no order is sent. What it
   * throws becomes the `cause` of the `StoreError` as it is, so it must not name secrets.
   */
  encrypt(text: string): string | Promise<string>
  decrypt(text: string): string | Promise<string>
}

/**
 * Schemas of your own, for fields of the service that the API document does not show. Anything that follows Standard
 * Schema (zod, valibot, arktype, …) fits. Each runs after the built-in check, on the same data; what it returns is what
 * the methods return, typed so.
 */
export interface Schemas {
  /** For `orders.create`, `createMany`, `retrieve`, `list`, `waitFor`, `recover` and `reconcile`. */
  readonly order?: StandardSchemaV1 | undefined
  /** For `services.list` and `retrieve`. */
  readonly service?: StandardSchemaV1 | undefined
  /** For `balance.retrieve`. */
  readonly balance?: StandardSchemaV1 | undefined
}

/** What the order methods of a client with these schemas return. */
export type OrderOf<S extends Schemas> = OutputOf<S, 'order', Order>

/** What the service methods of a client with these schemas return. */
export type ServiceOf<S extends Schemas> = OutputOf<S, 'service', Service>

/** What `balance.retrieve` of a client with these schemas returns. */
export type BalanceOf<S extends Schemas> = OutputOf<S, 'balance', Balance>

type OutputOf<S extends Schemas, Name extends keyof Schemas, Default> =
  S extends Readonly<Record<Name, infer Schema extends StandardSchemaV1>>
    ? StandardSchemaV1.InferOutput<Schema>
    : Default

/**
 * An API key; a sync or async function that returns one; or null if a proxy adds the Authorization
 * header.
 *
 * The function is called before every request, so it can read a secret manager that rotates keys;
 * cache there what is slow. After a 401 it is called once more and the request is repeated. A key
 * is 1 to 4096 visible ASCII characters; one line break at its end, as files have it, is cut off.
 */
export type ApiKey = string | (() => string | Promise<string>) | null

/** How long settled orders are remembered, in milliseconds. */
export interface Retention {
  /**
   * Created orders. Until then, `create()` with the same reference or key returns the remembered order; after it, the
   * same call asks the service again. Not less than {@link ClientOptions.safeRetryWindow}. Default 400 days
   * (34,560,000,000).
   */
  readonly created?: number | undefined
  /** Refused, cancelled and abandoned orders. Default 7 days (604,800,000). */
  readonly rejected?: number | undefined
}

/**
 * Options of the client. All are read once, when the client is made; `undefined` means the default. A name that is not
 * here is refused, because a misspelled `acount` would silently cost the protection it was meant to give.
 */
export interface ClientOptions<S extends Schemas = Schemas> {
  /**
   * Address of the service, before `/v1`, for example `https://api.example.com`. https, except for this machine
   * (`localhost`, `127.0.0.1`, `[::1]`) and with {@link ClientOptions.allowInsecureHttp}. No user name, query or fragment; a path is kept, slashes at its end are not.
   * Default: the environment variable `CUSTOMER_ORDERING_BASE_URL`; required one way or the other.
   */
  readonly baseUrl?: string | URL | undefined

  /**
   * True to accept an http address of another machine, over which everybody on the way can read the API key. Meant for
   * private networks: docker-compose, a service mesh that encrypts by itself. Default false.
   */
  readonly allowInsecureHttp?: boolean | undefined

  /**
   * Where the API key comes from. A key belongs on a server: in a page or web worker a literal one is refused, see
   * {@link ClientOptions.dangerouslyAllowBrowser}.
   * Default: the environment variable `CUSTOMER_ORDERING_API_KEY`; required one way or the other.
   * @example
   * apiKey: () => secrets.read('ordering-api-key')
   */
  readonly apiKey?: ApiKey | undefined

  /**
   * Label of the customer account that the API key acts for, for example `example.com/shop-eu`. Choose it once and keep
   * it: it separates remembered orders, and together with {@link ClientOptions.server} the Idempotency-Key of an order with
   * an `externalOrderId` is computed from it: a process that has forgotten the order sends its first key again.
   * Two accounts must never share one, also not those of two companies: a label such as `shop` and the reference `1001`
   * give the same key to everybody who chose them. A domain of yours in it makes it unique.
   * White space around it is cut off, as files and environment variables have it.
   * Default: none, and keys are random. Required with a store that outlives the process.
   */
  readonly account?: string | undefined

  /**
   * Where orders are remembered until their outcome is known, and after. The default protects against retries and racing
   * calls in this process; a durable one (`customer-ordering-sdk/stores/sqlite`, or your own) also against crashes.
   * Default: a new `MemoryStore`.
   */
  readonly store?: OrderStore | undefined

  /**
   * Label of the service, for remembered orders and computed keys. Set it if the same service has several addresses, or
   * moves to another one; otherwise open orders would be looked for under the wrong name. Never share one between
   * sandbox and production.
   * Default: {@link ClientOptions.baseUrl} in one normal spelling. Required in a page with a store that outlives it and a
   * `baseUrl` of the page's own origin, which changes with the address that the visitor typed.
   */
  readonly server?: string | undefined

  /**
   * Milliseconds for one attempt, from sending to the last byte of the response. Never more than what is left of
   * {@link ClientOptions.totalTimeout}. Default 30,000.
   */
  readonly timeout?: number | undefined

  /**
   * Milliseconds for a whole call, with all attempts and the waits between them; for lists, for each page. It also
   * counts against {@link ClientOptions.safeRetryWindow}. Default 120,000.
   */
  readonly totalTimeout?: number | undefined

  /**
   * Most retries of a call, 0 to 100; 0 means one attempt. Retries of `orders.create` are safe: they carry the same key.
   * Polling an earlier request with the same key, and replaying a response that could not be read, are no
   * retries. They use exponential backoff with full jitter and honour `Retry-After`. Default 4.
   */
  readonly maxRetries?: number | undefined

  /**
   * Milliseconds from its first send during which an Idempotency-Key may be sent again. The API document does not say
   * how long the service remembers keys; a key it has forgotten would buy a second time. Widen it once your provider
   * confirms a lifetime. What is older is looked up and never repeated blindly. A call's `totalTimeout` is subtracted,
   * so a window that is not longer leaves nothing to be repeated by another call. Default 20 minutes (1,200,000).
   */
  readonly safeRetryWindow?: number | undefined

  /**
   * Whose Idempotency-Keys the service remembers together. `'apiKey'` assumes the least: each API key has its own, so an
   * order in doubt is repeated only with the API key that sent it. `'customer'`: all API keys of a customer share them;
   * set it if your provider says so, and key rotation no longer leaves orders to be looked up. Default `'apiKey'`.
   */
  readonly idempotencyScope?: 'apiKey' | 'customer' | undefined

  /**
   * How much of a created order is remembered: all of it, or only `id`, `status` and `amount`, where the rest should
   * not be at rest in the store. A remembered order that `create()` returns is then as short. Default `'order'`.
   */
  readonly remember?: 'order' | 'id' | undefined

  /**
   * How long settled orders are remembered at least; longer where orders are rare, because a clock alone removes nothing.
   * Orders without a known outcome are never dropped.
   */
  readonly retention?: Retention | undefined

  /**
   * Encrypts what is stored. Names of rows, their state and times stay readable, for the store must find them. Rows that
   * were stored without one are read as they are, and encrypted with their next change.
   * Default: none. API keys are never stored.
   */
  readonly codec?: Codec | undefined

  /**
   * How requests are sent, for example `undiciTransport()` of `customer-ordering-sdk/undici`. It stays yours: closing the
   * client leaves it open. Default: the global `fetch`.
   */
  readonly transport?: Transport | undefined

  /**
   * Sends requests in place of the global `fetch`: an instrumented one, the sandbox's, one of a test. With it, no failure
   * counts as "surely not sent". It goes with no `transport`. Default: the global `fetch`, looked up at each request.
   */
  readonly fetch?: typeof fetch | undefined

  /**
   * Headers of every request. Values are visible ASCII. Refused are those that belong to the client: `Authorization`,
   * `Idempotency-Key`, `Accept`, `Content-*`, `Host`, `Connection`, `Transfer-Encoding` and `Cookie`.
   */
  readonly defaultHeaders?: Readonly<Record<string, string>> | undefined

  /** Functions that watch every request, retry and outcome. They cannot change anything: {@link Hooks}. */
  readonly hooks?: Hooks | undefined

  /** Where log lines go; `console`, pino, winston and consola fit. Lines hold references and Idempotency-Keys, and no header, body or API key. Default: none, nothing is logged. */
  readonly logger?: Logger | undefined

  /** Least severe level that is logged. Default `'warn'`: orders whose outcome is not known or not stored. */
  readonly logLevel?: LogLevel | undefined

  /**
   * Your own schemas for orders, services and balances; the methods' return types follow.
   * @example
   * schemas: { order: z.looseObject({ id: z.string(), status: z.enum(['queued', 'done']) }) }
   */
  readonly schemas?: S | undefined

  /**
   * Finds the rows of a list response. The API document does not show the envelope. Default: the response is an array,
   * or an object with exactly one array in it.
   * @example
   * listEnvelope: (body) => ({ items: body.payload.rows, total: body.payload.count })
   */
  readonly listEnvelope?: ((body: unknown) => ListEnvelope) | undefined

  /**
   * True to accept a literal API key in a page or web worker, where every visitor can read it and spend the wallet.
   * Meant for internal tools; otherwise let a server of yours add the key and set `apiKey: null`. Default false.
   */
  readonly dangerouslyAllowBrowser?: boolean | undefined
}

/** Options of one call, always its last argument. Absent means what the client was made with. */
export interface RequestOptions {
  /** Ends the call when it is aborted; its reason becomes the error's `cause`. For lists, ends the iteration. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds for one attempt, its body included. */
  readonly timeout?: number | undefined
  /** Milliseconds for the whole call; for lists, for each page. */
  readonly totalTimeout?: number | undefined
  /** Most retries, 0 to 100. */
  readonly maxRetries?: number | undefined
  /** Headers of this call, over those of the client; the same names are refused. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** Options of `orders.create`. */
export interface CreateOptions extends RequestOptions {
  /**
   * Idempotency-Key to send, 1 to 255 visible ASCII characters; used as it is and never changed. One key is one order.
   * Without an `externalOrderId` it is also the order's name; `undefined`, given for such an order, is refused. Default:
   * computed from the reference, or random.
   */
  readonly idempotencyKey?: string | undefined
  /**
   * True to buy the same thing again although an order without reference and key for it is still unresolved. For orders
   * without reference and key only; others have a name of their own. Default false.
   */
  readonly allowDuplicate?: boolean | undefined
  /** The service being ordered, to check the quantity before anything is sent. */
  readonly service?: Service | undefined
}

/** Options of `orders.enqueue`. */
export interface EnqueueOptions extends Pick<CreateOptions, 'idempotencyKey' | 'service'> {
  /**
   * The rows of the client's store inside a transaction of yours, for example `store.within(connection)` of a
   * `PostgresStore`: the order is remembered if the transaction is committed, and only then. Default: the store itself.
   */
  readonly within?: OrderOutbox | undefined
}

/** One row of `orders.createMany`: an order with a reference, or an order and its Idempotency-Key. */
export type CreateManyRow =
  | CreateOrderRequest
  | { readonly request: CreateOrderRequest; readonly idempotencyKey: string }

/** How far `orders.createMany` has come. */
export interface CreateManyProgress {
  /** Rows that are settled, however they ended. */
  readonly completed: number
  /** Orders made by this run, as far as anybody can know. */
  readonly created: number
  /** Orders that existed before. */
  readonly replayed: number
  /** Rows that ended in an error. */
  readonly failed: number
}

/** Options of `orders.createMany`; those of a call are for each row. */
export interface CreateManyOptions extends RequestOptions {
  /** The most orders that are placed at the same time, a positive integer. Default 8. */
  readonly concurrency?: number | undefined
  /** Called after each row. One that throws ends the iteration. */
  readonly onProgress?: ((progress: CreateManyProgress) => void) | undefined
}

/** Options of `orders.waitFor`. */
export interface WaitForOptions<T = Order> extends RequestOptions {
  /** Returns true if the order is as you want it. Statuses are not documented, so only you can tell. */
  readonly until: (order: T) => boolean | Promise<boolean>
  /** Milliseconds for the whole wait, not for one attempt. Default 120,000. */
  readonly timeout?: number | undefined
}

/** Options of `orders.recover`. */
export interface RecoverOptions extends RequestOptions {
  /**
   * `'all'` repeats requests also past the safe-retry window, after an abort, and after a refusal that proved nothing.
   * It can buy a second time if the service has forgotten the key. Default `'safe'`.
   */
  readonly replay?: 'safe' | 'all' | undefined
  /**
   * True to claim, without waiting, orders that a call of another process may still be placing. Safe; meant for the
   * start after a crash, when that process is known to be gone. Default false.
   */
  readonly takeOver?: boolean | undefined
}

/** Options of `list`; those of a call are for each page. */
export interface ListOptions extends RequestOptions {
  /**
   * Pages to keep in flight while the items of one are handed out, 0 to 16; together at most 1,000 items (one page, if
   * pages are larger). Items come in the order of the list. Default 0: a page is fetched when it is needed.
   */
  readonly prefetch?: number | undefined
}

/** What part of a list to read. */
export interface ListParams {
  /** Most items per page, a positive integer. Default: the service's, which is 50. */
  readonly limit?: number | undefined
  /** Items to skip, an integer from 0 on. Default 0. */
  readonly offset?: number | undefined
}

/** What part of the order list to read. */
export interface ListOrdersParams extends ListParams {
  /** Only orders created by this integration. */
  readonly sourceSystem?: string | undefined
}

/** What `orders.reconcile` compares. */
export interface ReconcileParams {
  /**
   * Reports only remembered orders written since then, milliseconds since 1970. Default 0: all. An older one that the
   * store knows is never `only_remote`.
   */
  readonly since?: number | undefined
  /** Only listed orders created by this integration. */
  readonly sourceSystem?: string | undefined
}
