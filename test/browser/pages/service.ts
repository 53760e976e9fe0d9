/** The client against a service of another origin, over real connections. */
import {
  type AnyCustomerOrderingError,
  type ClientOptions,
  CustomerOrderingClient,
  isCustomerOrderingError,
  responseInfo,
} from 'customer-ordering-sdk'
import type { FaultAction, FaultRule, SandboxCharge, SandboxOperation } from 'customer-ordering-sdk/sandbox'
import { IndexedDbStore } from 'customer-ordering-sdk/stores/indexeddb'
import { expect, it } from 'vitest'
import { ask, runAndReport } from '../support/page-report.ts'

export type Question =
  | { readonly type: 'fault'; readonly rule: FaultRule }
  | { readonly type: 'charges'; readonly externalOrderId: string }
  | { readonly type: 'orderMade'; readonly externalOrderId: string }
  | { readonly type: 'statusChanged'; readonly orderId: string; readonly status: string }

export interface ToldQuestion {
  readonly told: { readonly code?: string; readonly charged: string; readonly attempts: number | undefined }
}

const query = new URLSearchParams(location.search)
/**
 * True if the browser resends a POST on its own. Then the client may see one attempt for two
 * requests.
 */
const repeats = query.get('repeats') === 'true'
const baseUrl = query.get('service') ?? ''
const apiKey = query.get('apiKey') ?? ''
/** References and databases that only this run uses. */
const run = query.get('run') ?? ''

const tell = (question: Question): Promise<unknown> => ask(question)
const goWrong = (action: FaultAction, operation: SandboxOperation = 'createOrder', times = 1) =>
  tell({ type: 'fault', rule: { match: { operation }, action, times } })
const charges = async (externalOrderId: string): Promise<readonly SandboxCharge[]> =>
  (await tell({ type: 'charges', externalOrderId })) as readonly SandboxCharge[]

const clientOf = (options: ClientOptions = {}): CustomerOrderingClient =>
  new CustomerOrderingClient({ baseUrl, apiKey: () => apiKey, account: 'shop', ...options })

let references = 0
const order = (reference = `${run}-${++references}`) => ({
  serviceId: 'svc_standard',
  target: '@ada',
  quantity: 1,
  metadata: { externalOrderId: reference },
})

async function errorOf(call: Promise<unknown>): Promise<AnyCustomerOrderingError> {
  const error = await call.then(() => new Error('the call succeeded')).catch((thrown: unknown) => thrown)
  if (!isCustomerOrderingError(error)) throw error
  return error
}

const LOST: readonly (readonly [what: string, action: FaultAction])[] = [
  ['the connection is reset after the charge', { type: 'commitThenDrop' }],
  ['the connection is reset before it', { type: 'drop' }],
  ['the response is cut off', { type: 'cutBody' }],
  ['the response ends too early', { type: 'cutBody', cleanly: true }],
  ['a gateway responds', { type: 'status', status: 502, html: true, commit: true }],
]

function suite(): void {
  it('an error shows no API key, however it is printed', async () => {
    await goWrong({ type: 'status', status: 500, text: `Bearer ${apiKey}` })
    const error = await errorOf(clientOf({ maxRetries: 0 }).orders.create(order()))
    const shown = [String(error), error.stack, JSON.stringify(error), error.message]
    for (const name of Object.getOwnPropertyNames(error)) shown.push(String(Reflect.get(error, name)))
    expect(shown.join()).not.toContain(apiKey)
    expect(JSON.parse(JSON.stringify(error))).toMatchObject({ name: 'ServerError', charged: 'unknown' })
    expect(String(error)).toContain('may have been charged')
  })

  it.each(LOST)('if %s, the order is sent again with the same key: charged once', async (_what, action) => {
    const request = order()
    await goWrong(action)
    const client = clientOf()
    const placed = await client.orders.create(request)
    const unseen = repeats && (action.type === 'commitThenDrop' || action.type === 'drop')
    expect(unseen ? [1, 2] : [2]).toContain(responseInfo(placed)?.attempts)
    expect(await charges(request.metadata.externalOrderId)).toMatchObject([{ orderId: placed.id }])
    const again = await client.orders.create(request)
    expect(again.id).toBe(placed.id)
    expect(responseInfo(again)).toMatchObject({ replayed: true, attempts: 0 })
  })

  it('a response that does not come in time ends the attempt, or the call', async () => {
    await goWrong({ type: 'stall' })
    const placed = await clientOf().orders.create(order(), { timeout: 500 })
    expect(responseInfo(placed)?.attempts).toBe(2)
    await goWrong({ type: 'stallBody' }, 'retrieveBalance')
    const read = clientOf().balance.retrieve({ totalTimeout: 500 })
    expect(await errorOf(read)).toMatchObject({ code: 'timeout', charged: 'no' })
  })

  it('a caller who gives up is told what may have happened', async () => {
    const request = order()
    await goWrong({ type: 'stall', commit: true })
    const client = clientOf()
    const controller = new AbortController()
    const reason = new Error('no longer wanted')
    const call = client.orders.create(request, { signal: controller.signal })
    while ((await charges(request.metadata.externalOrderId)).length === 0);
    controller.abort(reason)
    const error = await errorOf(call)
    expect(error).toMatchObject({ code: 'aborted', charged: 'unknown' })
    expect(error.cause).toBe(reason)
    const open = (await client.orders.unresolved()).map(({ externalOrderId }) => externalOrderId)
    expect(open).toEqual([request.metadata.externalOrderId])
    expect(responseInfo(await client.orders.create(request))?.attempts).toBe(1)
    expect(await charges(request.metadata.externalOrderId)).toHaveLength(1)
  })

  it('a Retry-After that the page cannot read is not waited for', async () => {
    await goWrong({ type: 'status', status: 429, headers: { 'retry-after': '3600' } })
    const waits: unknown[] = []
    const client = clientOf({ hooks: { onRetry: ({ retryAfter }) => waits.push(retryAfter) } })
    const placed = await client.orders.create(order())
    expect(waits).toEqual([undefined])
    expect(responseInfo(placed)?.attempts).toBe(2)
  })

  it('a response whose headers the page cannot read has no request id', async () => {
    const info = responseInfo(await clientOf().balance.retrieve())
    expect(info).toMatchObject({ status: 200, attempts: 1 })
    expect(info?.requestId).toBeUndefined()
    const hidden = [...(info?.headers.keys() ?? [])].filter((name) => /request-id|retry-after/.test(name))
    expect(hidden).toEqual([])
  })

  it('a redirect is refused and not followed', async () => {
    const headers = { location: `${location.origin}/elsewhere` }
    await goWrong({ type: 'status', status: 307, headers }, 'retrieveBalance')
    const error = await errorOf(clientOf({ maxRetries: 0 }).balance.retrieve())
    expect(error.code).toBe('invalid_response')
  })

  it('an order with a header that the service does not allow is refused by the browser, and stays open', async () => {
    const request = order()
    const client = clientOf({ maxRetries: 0 })
    const error = await errorOf(client.orders.create(request, { headers: { 'x-shop': 'eu' } }))
    expect(error).toMatchObject({ code: 'connection', charged: 'unknown' })
    expect(await charges(request.metadata.externalOrderId)).toEqual([])
    expect((await client.orders.create(request)).status).toBeTypeOf('string')
  })
}

/** Places an order whose page is closed before the response arrives. */
const LEFT = 'left behind'

function leave(): void {
  it('begins an order that is charged and never answered', async () => {
    await goWrong({ type: 'stall', commit: true })
    void clientOf({ store: new IndexedDbStore({ name: 'left' }) })
      .orders.create(order(LEFT))
      .catch(() => {})
    while ((await charges(LEFT)).length === 0);
  })
}

function comeBack(): void {
  it('settles what the page before has left', async () => {
    const client = clientOf({ store: new IndexedDbStore({ name: 'left' }) })
    const found = client.orders.recover({ takeOver: true })
    for await (const { outcome, record } of found)
      expect([outcome, record.externalOrderId]).toEqual(['created', LEFT])
    const [charge] = await charges(LEFT)
    expect((await client.orders.create(order(LEFT))).id).toBe(charge?.orderId)
    expect(await charges(LEFT)).toHaveLength(1)
    await client.close()
  })
}

/** Sends one order on a connection that has carried a request before. */
function onUsedConnection(): void {
  it('orders', async () => {
    const client = clientOf({ maxRetries: 0 })
    await client.balance.retrieve()
    const told = await client.orders.create(order('used')).then(
      (placed): ToldQuestion['told'] => ({ charged: 'yes', attempts: responseInfo(placed)?.attempts }),
      (error): ToldQuestion['told'] => {
        if (!isCustomerOrderingError(error)) throw error
        return { code: error.code, charged: error.charged, attempts: error.attempts }
      },
    )
    await ask({ told } satisfies ToldQuestion)
  })
}

/** A service whose responses a browser may cache and reuse for any request to the same address. */
function cached(): void {
  const optionsOf = (account: string, key: string): ClientOptions => ({
    apiKey: () => key,
    account,
    store: new IndexedDbStore({ name: `${account}-${run}`, openTimeout: 30_000 }),
    maxRetries: 0,
  })
  const first = optionsOf('first', apiKey)
  const second = optionsOf('second', query.get('otherApiKey') ?? '')

  /** Begins an order whose response never comes. */
  const leaveBehind = async (options: ClientOptions, reference: string, commit: boolean): Promise<void> => {
    await goWrong({ type: 'stall', commit })
    const error = await errorOf(clientOf({ ...options, timeout: 1000 }).orders.create(order(reference)))
    expect(error).toMatchObject({ code: 'timeout', charged: 'unknown' })
  }
  /** Recovers as a later client does, which may only look up the remaining orders in the list. */
  const recover = async (options: ClientOptions): Promise<unknown> => {
    const found: unknown[] = []
    for await (const { outcome, order: placed } of clientOf({
      ...options,
      safeRetryWindow: 60_000,
    }).orders.recover())
      found.push([outcome, placed?.id])
    return found
  }

  it('shows the own wallet, not that of another account', async () => {
    const amounts: number[] = []
    for (const options of [first, second]) amounts.push((await clientOf(options).balance.retrieve()).amount)
    expect(amounts).toEqual([1_000_000, 500])
  })

  it('adopts no order of another account with the same reference', async () => {
    const reference = `${run}-shared`
    await leaveBehind(first, reference, true)
    const [charge] = await charges(reference)
    expect(await recover(first)).toEqual([['created', charge?.orderId]])
    await leaveBehind(second, reference, false)
    expect(await recover(second)).toEqual([['needs_attention', undefined]])
    await clientOf(second).orders.resolve({ externalOrderId: reference }, { as: 'abandoned' })
  })

  it('finds an order that was charged after an empty list was read', async () => {
    const reference = `${run}-late`
    await leaveBehind(second, reference, false)
    expect(await recover(second)).toEqual([['needs_attention', undefined]])
    const id = await tell({ type: 'orderMade', externalOrderId: reference })
    expect(await recover(second)).toEqual([['created', id]])
  })

  it('sees a new status while it waits, and an order as it is now', async () => {
    const client = clientOf(first)
    const { id, status } = await client.orders.create(order())
    expect((await client.orders.retrieve(id)).status).toBe(status)
    await tell({ type: 'statusChanged', orderId: id, status: 'delivered' })
    const delivered = await client.orders.waitFor(id, {
      until: (placed) => placed.status === 'delivered',
      timeout: 5000,
    })
    expect(delivered.status).toBe('delivered')
    expect((await client.orders.retrieve(id)).status).toBe('delivered')
  })
}

const parts: Readonly<Record<string, () => void>> = { suite, leave, comeBack, onUsedConnection, cached }
const part = query.get('part') ?? 'suite'
void runAndReport({ [part]: parts[part] ?? suite })
