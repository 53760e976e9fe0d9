import type { RequestOptions } from './call-options.ts'
import { scopeOf } from './identity/keys.ts'
import { Lazy } from './lazy.ts'
import { Lifetime } from './lifetime.ts'
import type { ClientOptions, Schemas } from './options.ts'
import { Journal } from './orders/record/journal.ts'
import { Wallet } from './resources/balance.ts'
import { Orders } from './resources/orders.ts'
import { type RawRequest, type RawResult, sendRequest } from './resources/request.ts'
import { Services } from './resources/services.ts'
import type { Runtime } from './runtime.ts'
import type { StandardSchemaV1 } from './schemas/standard-schema.ts'
import { callSettings, readArguments } from './settings/arguments.ts'
import { answerHabits, METHODS_OF_CALLS, METHODS_OF_RESOURCES } from './settings/habits.ts'
import { mergeOptions, resolveSettings, type Settings } from './settings/resolve.ts'

/** Empty if the compiler's `lib` has no `Symbol.asyncDispose`, so that old projects compile. */
type AsyncDisposal = SymbolConstructor extends { readonly asyncDispose: infer Name extends symbol }
  ? { readonly [Key in Name]: () => Promise<void> }
  : object

/**
 * Client of the Customer Ordering API.
 *
 * Make one and share it: concurrent calls are safe.
 *
 * @example
 * const client = new CustomerOrderingClient({
 *   baseUrl: 'https://api.example.com',
 *   apiKey: process.env.ORDERING_API_KEY,
 *   account: 'example.com/shop-eu',
 *   store: new SqliteStore({ path: 'orders.db' }),
 * })
 */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: all that the interface adds is defined in the static block
export class CustomerOrderingClient<S extends Schemas = Schemas> {
  static {
    // Not declared as a method of the class: in runtimes without the symbol, the method would be
    // named "undefined".
    if (Symbol.asyncDispose !== undefined) {
      // Uses `this` instead of the class name: the bundler renames a class that refers to itself,
      // and console.log would show the new name.
      Object.defineProperty(this.prototype, Symbol.asyncDispose, {
        value: function (this: CustomerOrderingClient): Promise<void> {
          return this.close()
        },
        configurable: true,
        writable: true,
      })
    }
    answerHabits(Lazy.prototype, METHODS_OF_CALLS)
    for (const { prototype } of [Orders, Services, Wallet]) answerHabits(prototype, METHODS_OF_RESOURCES)
  }

  /** Places, reads and settles orders. */
  readonly orders: Orders<S>
  /** The services that can be ordered. */
  readonly services: Services<S>
  /** The wallet that pays for orders. */
  readonly balance: Wallet<S>

  readonly #settings: Settings<S>
  readonly #runtime: Partial<Runtime>
  readonly #journal: Journal
  readonly #lifetime: Lifetime = new Lifetime()
  #sharesStore = false
  #closing: Promise<void> | undefined

  /**
   * Makes a client. Sends nothing.
   *
   * @param options see {@link ClientOptions}; `baseUrl` and `apiKey` may come from the environment
   * @param runtime replacements for clocks, timers, randomness and ids, for tests
   * @throws {ConfigurationError} naming the option that is missing, unknown or wrong
   * @example
   * const client = new CustomerOrderingClient({ account: 'example.com/shop-eu' })
   */
  constructor(options: ClientOptions<S> = {}, runtime: Partial<Runtime> = {}) {
    const settings = resolveSettings(options, runtime)
    const { connection, store, codec, retention, server, account } = settings
    const scope = scopeOf(server, account)
    this.#settings = settings
    this.#runtime = runtime
    const { runtime: own, reporter } = connection
    this.#journal = new Journal({ store, scope, codec, retention, runtime: own, reporter })
    const context = { ...settings, lifetime: this.#lifetime, journal: this.#journal }
    this.orders = new Orders(context)
    this.services = new Services(context)
    this.balance = new Wallet(context)
  }

  /**
   * Sends a request to an endpoint that this package has no method for.
   *
   * It has the retries, time limits, hooks and errors of the other methods. Never place orders with this
   * method, because the client stores no record of the request.
   *
   * @throws {InvalidRequestError} if the path could leave the base URL, or an argument is wrong
   * @throws {ApiError} if the service returned an error status; common statuses have a subclass
   * @throws {ConnectionError} or {@link TimeoutError} if no complete response arrived
   * @throws {InvalidResponseError} if the response is not JSON, or does not match `schema`
   * @throws {RequestAbortedError} if `signal` ended the call
   * @example
   * const refund = await client.request({
   *   method: 'GET',
   *   path: '/v1/refunds/ref_1',
   *   schema: refundSchema,
   * })
   */
  async request<Schema extends StandardSchemaV1 | undefined = undefined>(
    request: RawRequest<Schema>,
    options?: RequestOptions,
  ): Promise<RawResult<Schema>> {
    this.#lifetime.check()
    const { connection, defaults } = this.#settings
    const settings = callSettings(defaults, readArguments.call(options))
    // Either the schema produced the result, or there is no schema and the type is `unknown`.
    return (await sendRequest(connection, request, settings)) as RawResult<Schema>
  }

  /**
   * Makes a client with some options changed.
   *
   * Unless you pass another store, both clients share the store and see each other's calls in
   * progress.
   *
   * Remembered orders belong to a `server` and an `account`. If you change either, the new client
   * neither sees nor continues the orders of this client. So if you change `baseUrl`, also set
   * `server`: to the old address, without a slash at its end, if the same service has moved, or to
   * the new address if you switch to another service.
   *
   * @throws {ConfigurationError} naming the option that is unknown or wrong
   * @example
   * const patient = client.withOptions({ totalTimeout: 300_000 })
   */
  withOptions<Changed extends Schemas = S>(
    overrides: Partial<ClientOptions<Changed>>,
  ): CustomerOrderingClient<Changed> {
    const derived = makeClient(mergeOptions(this.#settings.options, overrides), this.#runtime)
    const { connection } = this.#settings
    const derivedConnection = derived.#settings.connection
    // Without the tag of the API key, the proxy could send the derived client's first retry under
    // another API key.
    if (derivedConnection.baseUrl === connection.baseUrl && derived.#settings.options.apiKey === null)
      derivedConnection.credentials.proxyTag = connection.credentials.proxyTag
    derived.#sharesStore = derived.#settings.store === this.#settings.store
    if (derived.#sharesStore) derived.#lifetime.closeWith(this.#lifetime)
    return derived
  }

  /**
   * Waits for every call that uses the store, and closes the store.
   *
   * A client that `withOptions()` made with the same store does not close the store. Reads in
   * progress continue.
   *
   * Every later call, reads included, rejects with a {@link ConfigurationError} before anything is
   * sent. So does the next request of an iteration in progress. Clients that `withOptions()` made with
   * the same store are closed, too. Calling `close()` again does nothing, or retries what failed.
   *
   * @throws {StoreError} if the store could not be closed
   * @example
   * await client.close()
   */
  close(): Promise<void> {
    this.#closing ??= this.#close().catch((error: unknown) => {
      // Lets the next `close()` retry what failed.
      this.#closing = undefined
      throw error
    })
    return this.#closing
  }

  async #close(): Promise<void> {
    await this.#lifetime.end()
    await this.#journal.idle()
    if (!this.#sharesStore) await this.#settings.store.close()
  }

  /** Returns the address and the account for logs, without the API key. */
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

/**
 * Makes `await using client = …` close the client at the end of the block.
 *
 * See {@link CustomerOrderingClient.close}.
 */
// biome-ignore lint/correctness/noUnusedVariables: the parameters of a class and its interface must be the same
export interface CustomerOrderingClient<S extends Schemas = Schemas> extends AsyncDisposal {}
