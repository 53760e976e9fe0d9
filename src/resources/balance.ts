import type { RequestOptions } from '../call-options.ts'
import type { BalanceOf, Schemas } from '../options.ts'
import { balanceSchema } from '../schemas/balance.ts'
import { type Reader, reader } from '../schemas/shape.ts'
import { type ResourceContext, retrieve } from './context.ts'

const RETRIEVE = {
  operation: 'balance.retrieve',
  method: 'GET',
  permission: 'balance:read',
  missing: 'wallet',
} as const

/** The wallet that orders are paid from (permission `balance:read`). */
export class Wallet<S extends Schemas = Schemas> {
  readonly #context: ResourceContext
  readonly #reader: Reader<BalanceOf<S>>

  /** @internal */
  constructor(context: ResourceContext) {
    this.#context = context
    this.#reader = reader(balanceSchema, context.schemas.balance)
  }

  /**
   * Returns the balance of the wallet.
   *
   * A personal API key reads the user's wallet, and an organization's API key reads the
   * organization's.
   *
   * @throws {ApiError} if the service refused the request: a subclass for each status
   * @throws {ConnectionError} or {@link TimeoutError} if no complete response arrived
   * @throws {InvalidResponseError} if the response is not a balance
   * @throws {RequestAbortedError} if `signal` ended the call
   * @example
   * const { amount, currency } = await client.balance.retrieve()
   */
  async retrieve(options?: RequestOptions): Promise<BalanceOf<S>> {
    return await retrieve(this.#context, RETRIEVE, '/v1/balance', this.#reader.parse, options)
  }
}
