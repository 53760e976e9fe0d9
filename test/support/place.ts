import { type Hooks, Reporter, type SettledEvent } from '../../src/hooks.ts'
import type { AttemptRequest, AttemptResult, Send } from '../../src/http/attempt.ts'
import type { Credentials } from '../../src/http/call.ts'
import type { OrdersContext } from '../../src/orders/record/context.ts'
import type { Order } from '../../src/schemas/order.ts'
import { MemoryStore } from '../../src/stores/memory.ts'
import { journalOver, orderContext } from './order-context.ts'
import { type FakeRuntime, fakeRuntime } from './runtime.ts'

export { callSettings } from './order-context.ts'

/**
 * The environment for tests of one order method: its context with a scripted service, and times.
 */
export const API_KEY = 'api-key-of-this-shop'
export const MINUTE = 60_000
export const WINDOW = 20 * MINUTE
const YEAR = 365 * 24 * 60 * MINUTE
export const NOW = 1_700_000_000_000

const price = { amount: 5, currency: 'EUR' }
export const ORDER = { id: 'o1', serviceId: 's', target: 't', quantity: 1, ...price, status: 'pending' }

export const answer = (
  status: number,
  body: unknown = {},
  headers: Record<string, string> = {},
): AttemptResult => ({
  kind: 'answer',
  status,
  headers: new Headers(headers),
  text: typeof body === 'string' ? body : JSON.stringify(body),
})
export const problem = (status: number, code = 'NO'): AttemptResult => answer(status, { code, message: 'no' })
export const CREATED = answer(201, ORDER)
export const LOST: AttemptResult = {
  kind: 'failed',
  unsent: false,
  closed: false,
  detail: { name: 'TypeError' },
}
export const TIMED_OUT: AttemptResult = { kind: 'timeout' }
export const ABORTED: AttemptResult = { kind: 'aborted' }

/** An API key that is requested each time. */
export const rotating = (get: Credentials['get']): Credentials => ({ rotates: true, get })

export interface Place {
  readonly context: OrdersContext<Order>
  readonly runtime: FakeRuntime
  readonly store: MemoryStore
  readonly settled: SettledEvent[]
  readonly requests: AttemptRequest[]
  /** The requests: the reference of a sent order, or path and query. */
  readonly asked: string[]
}

/** A response of the service, or an action before it. */
export type Step = AttemptResult | ((place: Place, asked: string) => AttemptResult | Promise<AttemptResult>)

export interface PlaceOptions {
  readonly now?: number
  readonly credentials?: Credentials
  readonly hooks?: Hooks
  readonly context?: Partial<Omit<OrdersContext<Order>, 'connection'>>
}

/** A service that responds with one step after the other, and repeats the last one forever. */
export function placeWith(steps: readonly Step[] = [], given: PlaceOptions = {}): Place {
  const runtime = fakeRuntime({ auto: true, now: given.now ?? NOW })
  const store = new MemoryStore()
  const settled: SettledEvent[] = []
  const requests: AttemptRequest[] = []
  const asked: string[] = []
  const transport: Send = async (request) => {
    const step = steps[Math.min(requests.length, steps.length - 1)]
    requests.push(request)
    asked.push(askedBy(request))
    if (step === undefined) throw new Error('nothing is to be sent')
    return typeof step === 'function' ? await step(place, askedBy(request)) : step
  }
  const context = orderContext(
    {
      journal: journalOver(store, runtime),
      safeRetryWindow: WINDOW,
      retention: { created: YEAR, rejected: YEAR },
      ...given.context,
    },
    {
      runtime,
      send: transport,
      credentials: given.credentials ?? { rotates: false, get: () => API_KEY },
      reporter: new Reporter(
        { onSettled: (event) => void settled.push(event), ...given.hooks },
        undefined,
        'off',
      ),
    },
  )
  const place: Place = { context, runtime, store, settled, requests, asked }
  return place
}

function askedBy({ body, url }: AttemptRequest): string {
  if (body === undefined) return url.slice('https://api.example.com'.length)
  const request: { metadata?: { externalOrderId?: string } } = JSON.parse(body)
  return request.metadata?.externalOrderId ?? ''
}

export const GONE = new Error('gone')
/** Always rejects, as a failing store. */
export const fails = (): Promise<never> => Promise.reject(GONE)
/** Never responds, as a hanging store. */
export const hangs = (): Promise<never> => new Promise(() => {})
export const later = (runtime: FakeRuntime, milliseconds: number): Promise<void> =>
  new Promise((resolve) => void runtime.setTimer(resolve, milliseconds))

type Operation = 'get' | 'insert' | 'update' | 'listOpen'

/** Runs this before each call of the operation. */
export function beforeCall(store: MemoryStore, operation: Operation, act: () => unknown): void {
  const real: (...args: never[]) => unknown = store[operation]
  Object.assign(store, {
    [operation]: async (...args: never[]) => {
      await act()
      return await Reflect.apply(real, store, args)
    },
  })
}

/** Runs this instead of the next call of the operation. */
export function inPlaceOfNext(
  store: MemoryStore,
  operation: Operation,
  act: () => Promise<unknown> = fails,
): void {
  const real = store[operation]
  const next = (): Promise<unknown> => {
    Object.assign(store, { [operation]: real })
    return act()
  }
  Object.assign(store, { [operation]: next })
}
