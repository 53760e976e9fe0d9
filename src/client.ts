import { Lifetime } from './lifetime.ts'
import type { ClientOptions, RequestOptions, Schemas } from './options.ts'
import type { PlacedOrder } from './orders/context.ts'
import { scopeOf } from './orders/identity.ts'
import { Journal } from './orders/journal.ts'
import { type LiveCalls, liveCalls } from './orders/live.ts'
import { Wallet } from './resources/balance.ts'
import { Orders } from './resources/orders.ts'
import { type RawRequest, type RawResult, sendRequest } from './resources/request.ts'
import { Services } from './resources/services.ts'
import type { Runtime } from './runtime.ts'
import type { StandardSchemaV1 } from './schemas/standard-schema.ts'
import { callSettings, readArguments } from './settings/arguments.ts'
import { mergeOptions, resolveSettings, type Settings } from './settings/resolve.ts'

/**
 * What `await using` needs of an object, where the compiler knows the symbol for it: a page may be compiled with a `lib`
 * that does not, and the types of this package must be readable there, too.
 */
type AsyncDisposal = SymbolConstructor extends { readonly asyncDispose: infer Name extends symbol }
  ? { readonly [Key in Name]: () => Promise<void> }
  : object

/**
 * Client of the Customer Ordering API. Make one and share it: it may be used from anywhere at once.
 *
 * @example
 * const client = new CustomerOrderingClient({
 *   baseUrl: 'https://api.example.com',
 *   apiKey: process.env.ORDERING_API_KEY,
 *   account: 'shop-eu',
 *   store: new SqliteStore({ path: 'orders.db' }),
 * })
 */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: all that the interface adds is defined in the static block
export class CustomerOrderingClient<S extends Schemas = Schemas> {
  static {
    // Not as a method: runtimes without the symbol would name it "undefined".
    if (Symbol.asyncDispose !== undefined) {
      // By `this`: a class that names itself is renamed by the bundler, and console.log shows that name.
      Object.defineProperty(this.prototype, Symbol.asyncDispose, {
        value: function (this: CustomerOrderingClient): Promise<void> {
          return this.close()
        },
        configurable: true,
        writable: true,
      })
    }
  }

  /** Placing, reading and settling orders. */
  readonly orders: Orders<S>
  /** The store products that can be ordered. */
  readonly services: Services<S>
  /** The wallet that orders are paid from. */
  readonly balance: Wallet<S>

  readonly #settings: Settings<S>
  readonly #runtime: Partial<Runtime>
  readonly #journal: Journal
  readonly #live: LiveCalls<PlacedOrder>
  readonly #lifetime: Lifetime = new Lifetime()
  #sharesStore = false
  #closing: Promise<void> | undefined

  /**
   * @param options see {@link ClientOptions}; `baseUrl` and `apiKey` may come from the environment
   * @param runtime for tests: clocks, timers, randomness, ids
   * @throws {ConfigurationError} naming the option that is missing, unknown or wrong
   */
  constructor(options: ClientOptions<S> = {}, runtime: Partial<Runtime> = {}) {
    const settings = resolveSettings(options, runtime)
    const { connection, store, codec, server, account } = settings
    const scope = scopeOf(server, account)
    this.#settings = settings
    this.#runtime = runtime
    this.#journal = new Journal({ store, scope, codec, runtime: connection.runtime })
    // By store, so that derived clients and others over the same store know of each other's calls.
    this.#live = liveCalls(store, scope)
    const context = { ...settings, lifetime: this.#lifetime }
    this.orders = new Orders(context, { ...settings, journal: this.#journal, live: this.#live })
    this.services = new Services(context)
    this.balance = new Wallet(context)
  }

  /**
   * Sends a request to an endpoint that this package does not know, with the same retries, time limits, hooks and errors.
   * Nothing of it is remembered: never place orders with it.
   *
   * @throws {InvalidRequestError} if the path could leave the base URL, or an argument is wrong
   * @example
   * const refund = await client.request({ method: 'GET', path: '/v1/refunds/ref_1', schema: refundSchema })
   */
  async request<Schema extends StandardSchemaV1 | undefined = undefined>(
    request: RawRequest<Schema>,
    options?: RequestOptions,
  ): Promise<RawResult<Schema>> {
    this.#lifetime.check()
    const { connection, defaults } = this.#settings
    const settings = callSettings(defaults, readArguments.call(options))
    return (await sendRequest(connection, request, settings)) as RawResult<Schema>
  }

  /**
   * A client with some options changed. It shares everything else: the store, unless another one is given, and what is
   * known of the calls at work.
   *
   * Remembered orders belong to a `server` and an `account`: with another one, the new client neither sees nor continues
   * those of this one. So another `baseUrl` needs the option `server`: the old address if the same service has moved, the
   * new one if it is another service.
   *
   * @throws {ConfigurationError} naming the option that is unknown or wrong
   */
  withOptions<Changed extends Schemas = S>(
    overrides: Partial<ClientOptions<Changed>>,
  ): CustomerOrderingClient<Changed> {
    const derived = makeClient(mergeOptions(this.#settings.options, overrides), this.#runtime)
    const { connection } = this.#settings
    const its = derived.#settings.connection
    // What the proxy calls its API key, or the derived client's first retry would go out under any.
    if (its.baseUrl === connection.baseUrl && derived.#settings.options.apiKey === null)
      its.credentials.proxyTag = connection.credentials.proxyTag
    derived.#sharesStore = derived.#settings.store === this.#settings.store
    if (derived.#sharesStore) derived.#lifetime.follow(this.#lifetime)
    return derived
  }

  /**
   * Waits for the orders being placed and for whatever else is using the store, stores what still waits to be stored, and
   * closes the store (unless this client was derived from another and shares its store). Reads that are under way go on.
   *
   * Every call made later, reads included, ends in a {@link ConfigurationError} before anything is sent, and so does the
   * next step of an iteration that is under way. Clients derived from this one that share its store are closed with it.
   * Closing again does nothing, or tries again what failed.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close().catch((error: unknown) => {
      // Closing again tries again what failed.
      this.#closing = undefined
      throw error
    })
    return this.#closing
  }

  async #close(): Promise<void> {
    await this.#lifetime.end()
    await this.#live.idle()
    await this.#journal.flush({ whole: !this.#sharesStore })
    if (!this.#sharesStore) await this.#settings.store.close()
  }

  /** What may be printed of a client: where it points, and for whom. */
  toJSON(): { readonly baseUrl: string; readonly account?: string } {
    const { connection, account } = this.#settings
    return { baseUrl: connection.baseUrl, ...(account === undefined ? {} : { account }) }
  }
}

function makeClient<S extends Schemas>(
  options: ClientOptions<S>,
  runtime: Partial<Runtime>,
): CustomerOrderingClient<S> {
  return new CustomerOrderingClient(options, runtime)
}

/** `await using client = …` closes it at the end of the block; see {@link CustomerOrderingClient.close}. */
// biome-ignore lint/correctness/noUnusedVariables: the parameters of a class and its interface must be the same
export interface CustomerOrderingClient<S extends Schemas = Schemas> extends AsyncDisposal {}
