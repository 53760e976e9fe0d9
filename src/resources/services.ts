import type { ListOptions, ListParams, RequestOptions } from '../call-options.ts'
import { segment } from '../http/path.ts'
import { type ListEndpoint, listPages } from '../lists/list-pages.ts'
import type { Pages } from '../lists/pages.ts'
import type { Schemas, ServiceOf } from '../options.ts'
import { serviceSchema } from '../schemas/service.ts'
import { reader, withId } from '../schemas/shape.ts'
import { readArguments } from '../settings/arguments.ts'
import { type ResourceContext, retrieve } from './context.ts'

const PATH = '/v1/services'
const LIST = { operation: 'services.list', method: 'GET', permission: 'services:read' } as const
const RETRIEVE = { ...LIST, operation: 'services.retrieve', missing: 'service' } as const

/** The store products that can be ordered (permission `services:read`). */
export class Services<S extends Schemas = Schemas> {
  readonly #context: ResourceContext
  readonly #list: ListEndpoint<ServiceOf<S>>

  /** @internal */
  constructor(context: ResourceContext) {
    this.#context = context
    const rows = reader<ServiceOf<S>>(serviceSchema, context.schemas.service)
    this.#list = { endpoint: LIST, path: PATH, identifier: 'productId', ...rows }
  }

  /**
   * Lists the published services, with pagination built in.
   *
   * Pages are fetched while you iterate, and `await` fetches the first page. To order a service, use its
   * `productId` as `serviceId`.
   *
   * @throws {InvalidRequestError} if `limit` or `offset` is invalid
   * @example
   * for await (const { productId, amount } of client.services.list()) {
   *   console.log(productId, amount)
   * }
   */
  list(params?: ListParams, options?: ListOptions): Pages<ServiceOf<S>> {
    return listPages(this.#context, this.#list, readArguments.list(params), options)
  }

  /**
   * Retrieves one service: current price, quantity limits and stock state.
   *
   * @throws {NotFoundError} if there is no such service
   * @throws {InvalidResponseError} if the response contains another service
   * @example
   * const service = await client.services.retrieve('svc_standard')
   */
  async retrieve(serviceId: string, options?: RequestOptions): Promise<ServiceOf<S>> {
    const path = `${PATH}/${segment('serviceId', serviceId)}`
    const parse = withId('productId', serviceId, this.#list.parse)
    return await retrieve(this.#context, RETRIEVE, path, parse, options)
  }
}
