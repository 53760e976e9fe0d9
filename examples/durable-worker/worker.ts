/**
 * `PUT /orders/<reference>` places an order for one of the shop's own programs. Once a minute, the
 * cron trigger settles the orders that other requests left open.
 */
import { isCaller } from './caller.ts'
import type { OrderEnv, OrderObject } from './order-object.ts'
import { refused } from './refused.ts'

export { OrderObject } from './order-object.ts'

export interface Env extends OrderEnv {
  readonly ORDERS: DurableObjectNamespace<OrderObject>
  /** Secret: the token that callers of this worker send. Without it, every request is rejected. */
  readonly CALLER_TOKEN?: string
}

/** One object for each account. Returns a new stub: a stub stays broken after its object has died. */
function objectOf({ ORDERS, ORDERING_ACCOUNT }: Env): DurableObjectStub<OrderObject> {
  return ORDERS.getByName(ORDERING_ACCOUNT)
}

export default {
  async fetch(request, env, ctx): Promise<Response> {
    if (!env.CALLER_TOKEN || !env.ORDERING_API_KEY) {
      console.error('The request was rejected: set the secrets CALLER_TOKEN and ORDERING_API_KEY.')
      return refused(503, 'not_configured')
    }
    if (!(await isCaller(request, env.CALLER_TOKEN)))
      return refused(401, 'unauthenticated', { 'WWW-Authenticate': 'Bearer' })
    const { pathname } = new URL(request.url)
    const [, reference] = /^\/orders\/([\w-]{1,100})$/.exec(pathname) ?? []
    if (request.method !== 'PUT' || reference === undefined) return refused(404, 'not_found')
    const placed = objectOf(env).place(reference, await request.text())
    // If the caller disconnects, keep the request alive as long as the platform allows. Recovery
    // settles the order if that is not long enough.
    ctx.waitUntil(placed)
    return await placed
  },

  async scheduled(_controller, env): Promise<void> {
    await objectOf(env).recover()
  },
} satisfies ExportedHandler<Env>
