import { describe, expect, it } from 'vitest'
import { Reporter, type SettledEvent } from '../../../src/hooks.ts'
import type { CallSettings, Credentials } from '../../../src/http/call.ts'
import type { AttemptRequest, AttemptResult, Transport } from '../../../src/http/transport.ts'
import { rowIdOf } from '../../../src/idempotency/identity.ts'
import { readIntent } from '../../../src/idempotency/intent.ts'
import { type FoundRecord, Journal, type RecordContent } from '../../../src/idempotency/journal.ts'
import { makeKey, type OrderContext, tagOf } from '../../../src/resources/order-context.ts'
import { type OrderReply, type PlaceOrderOptions, placeOrder } from '../../../src/resources/place-order.ts'
import { unsentContent } from '../../../src/resources/unsent.ts'
import type { CreateOrderRequest, Order } from '../../../src/schemas/order.ts'
import { MemoryStore } from '../../../src/stores/memory.ts'
import { orderContext, recordOf, remember, storedRecords } from '../../support/order-context.ts'
import { type FakeRuntime, fakeRuntime } from '../../support/runtime.ts'

const API_KEY = 'api-key-of-this-shop'
const MINUTE = 60_000
const WINDOW = 20 * MINUTE
const NOW = 1_700_000_000_000

const ORDER = {
  id: 'o1',
  serviceId: 's',
  target: 't',
  quantity: 1,
  amount: 5,
  currency: 'EUR',
  status: 'pending',
}
const UNNAMED: CreateOrderRequest = { serviceId: 's', target: 't', quantity: 1 }
const NAMED: CreateOrderRequest = { ...UNNAMED, metadata: { externalOrderId: 'r1' } }

const answer = (status: number, body: unknown = {}, headers: Record<string, string> = {}): AttemptResult => ({
  kind: 'answer',
  status,
  headers: new Headers(headers),
  text: typeof body === 'string' ? body : JSON.stringify(body),
})
const CREATED = answer(201, ORDER)

interface Place {
  readonly context: OrderContext
  readonly runtime: FakeRuntime
  readonly store: MemoryStore
  readonly settled: SettledEvent[]
  readonly requests: AttemptRequest[]
}

type Step = AttemptResult | (() => AttemptResult | Promise<AttemptResult>)

/** A service that answers so, the last answer for ever. */
function placeWith(
  steps: readonly Step[],
  given: {
    readonly credentials?: Credentials
    readonly context?: Partial<Omit<OrderContext, 'connection'>>
  } = {},
): Place {
  const runtime = fakeRuntime({ auto: true, now: NOW })
  const store = new MemoryStore()
  const settled: SettledEvent[] = []
  const requests: AttemptRequest[] = []
  const transport: Transport = async (request) => {
    const step = steps[Math.min(requests.length, steps.length - 1)]
    requests.push(request)
    if (step === undefined) throw new Error('nothing is to be sent')
    return typeof step === 'function' ? await step() : step
  }
  const context = orderContext(
    {
      journal: new Journal({ store, scope: 's', codec: undefined, runtime }),
      safeRetryWindow: WINDOW,
      ...given.context,
    },
    {
      runtime,
      transport,
      credentials: given.credentials ?? { rotates: false, get: () => API_KEY },
      reporter: new Reporter({ onSettled: (event) => void settled.push(event) }, undefined, 'off'),
    },
  )
  return { context, runtime, store, settled, requests }
}

type Given = Partial<Omit<PlaceOrderOptions<Order>, 'settings'>> & {
  readonly settings?: Partial<CallSettings>
}

const placed = (
  { context }: Place,
  request: CreateOrderRequest,
  { settings, ...options }: Given = {},
): Promise<OrderReply<Order>> =>
  placeOrder(context, request, {
    settings: {
      signal: undefined,
      timeout: 30_000,
      totalTimeout: 2 * MINUTE,
      maxRetries: 0,
      headers: {},
      ...settings,
    },
    finish: async ({ value }) => value,
    ...options,
  })

/** Stores a record of the order, as an earlier call left it. */
async function left(
  { context }: Place,
  changes: Partial<RecordContent> = {},
  request: CreateOrderRequest = NAMED,
): Promise<FoundRecord> {
  const { runtime } = context.connection
  const intent = readIntent(runtime.deriveId, request, {})
  const content = unsentContent(context, intent, undefined, { moved: false })
  return await remember(context, {
    ...content,
    ambiguous: true,
    attempts: 1,
    firstSentAt: runtime.now(),
    apiKeyTag: tagOf(context, content.key, API_KEY),
    ...changes,
  })
}

describe('what comes with an order', () => {
  it('is what the answer said, how it was asked for, and by which names it is known', async () => {
    const place = placeWith([
      async () => {
        await new Promise<void>((resolve) => void place.runtime.setTimer(resolve, 700))
        return answer(201, ORDER, { 'x-request-id': 'req-1' })
      },
    ])
    const { value, info } = await placed(place, NAMED)
    const key = place.requests[0]?.headers['idempotency-key']
    expect(value).toEqual(ORDER)
    expect(Object.values(Object.getOwnPropertyDescriptors(info)).flatMap(({ get }) => get ?? [])).toEqual([])
    expect({ ...info, headers: [...info.headers()] }).toEqual({
      status: 201,
      requestId: 'req-1',
      attempts: 1,
      durationMs: 700,
      idempotencyKey: key,
      supportReference: { orderId: 'o1', idempotencyKey: key, externalOrderId: 'r1' },
      headers: [['x-request-id', 'req-1']],
    })
    expect(place.settled).toMatchObject([{ ok: true, durationMs: 700, attempts: 1, remembered: true }])
    const again = await placed(place, NAMED)
    expect({ ...again.info, headers: [...again.info.headers()] }).toEqual({
      attempts: 0,
      durationMs: 0,
      idempotencyKey: key,
      replayed: true,
      supportReference: { orderId: 'o1', idempotencyKey: key, externalOrderId: 'r1' },
      headers: [],
    })
  })

  it.each<[boolean | undefined, string, CreateOrderRequest, AttemptResult]>([
    [true, 'true', NAMED, answer(201, ORDER, { 'idempotent-replayed': 'true' })],
    [false, 'false', NAMED, answer(201, ORDER, { 'idempotent-replayed': 'false' })],
    [undefined, 'nothing', NAMED, CREATED],
    [undefined, 'something else', NAMED, answer(201, ORDER, { 'idempotent-replayed': 'yes' })],
    [false, 'nothing of a key that is new', UNNAMED, CREATED],
    [true, 'true of a key that is new', UNNAMED, answer(201, ORDER, { 'idempotent-replayed': 'true' })],
  ])('is replayed (%s) where the service says %s', async (replayed, _what, request, result) => {
    const { info } = await placed(placeWith([result]), request)
    expect(info.replayed).toBe(replayed)
  })

  it('is replayed where an earlier call may have sent it, and not where it only waited to be sent', async () => {
    const continued = placeWith([answer(201, ORDER, { 'idempotent-replayed': 'false' })])
    await left(continued)
    expect((await placed(continued, NAMED)).info.replayed).toBe(true)
    const read = placeWith([CREATED])
    await left(read, { state: 'created', ambiguous: false })
    expect((await placed(read, NAMED)).info.replayed).toBe(true)
    const queued = placeWith([CREATED])
    const { record, id, row } = await left(queued, { apiKeyTag: '', ambiguous: false, attempts: 0 })
    const { firstSentAt: _sent, ...unsent } = record
    await remember(queued.context, unsent, { id, row, record })
    expect((await placed(queued, NAMED)).info.replayed).toBeUndefined()
  })
})

describe('what hooks are told of a call', () => {
  it('counts the attempts and says what is stored, also where the caller’s schema fails', async () => {
    const place = placeWith([CREATED])
    const own = new Error('the caller’s own')
    await expect(placed(place, NAMED, { finish: () => Promise.reject(own) })).rejects.toBe(own)
    expect(place.settled).toEqual([
      {
        callId: expect.any(String),
        operation: 'orders.create',
        method: 'POST',
        path: '/v1/orders',
        durationMs: 0,
        ok: false,
        attempts: 1,
        externalOrderId: 'r1',
        remembered: true,
      },
    ])
  })

  it('says that an order is not stored', async () => {
    const place = placeWith([
      () => {
        place.store.update = () => Promise.reject(new Error('gone'))
        return CREATED
      },
    ])
    await placed(place, NAMED)
    expect(place.settled).toMatchObject([{ ok: true, charged: 'yes', remembered: false, status: 201 }])
  })
})

describe('an order that another process is working on', () => {
  const ended = async (place: Place, milliseconds: number): Promise<unknown> => {
    const controller = new AbortController()
    place.runtime.setTimer(() => controller.abort(), milliseconds)
    return await placed(place, NAMED, { settings: { signal: controller.signal } }).catch(
      (error: unknown) => error,
    )
  }

  it('is looked at again after 50 ms, then after twice as long each time, and once a second at last', async () => {
    const place = placeWith([CREATED])
    await left(place, { busyUntil: NOW + MINUTE })
    const looks: number[] = []
    const { get } = place.store
    place.store.get = (...of) => {
      looks.push(place.runtime.now() - NOW)
      return get.apply(place.store, of)
    }
    expect(await ended(place, 5000)).toMatchObject({ code: 'aborted', charged: 'unknown', attempts: 0 })
    // The last look is for what can be said of the wallet.
    expect(looks).toEqual([0, 50, 150, 350, 750, 1550, 2550, 3550, 4550, 5000])
  })

  it('is claimed again at once if that one was faster, and given time if it is so again and again', async () => {
    const place = placeWith([CREATED])
    await left(place)
    const claims: number[] = []
    place.store.update = async () => {
      claims.push(place.runtime.now() - NOW)
      return false
    }
    expect(await ended(place, 1000)).toMatchObject({ code: 'aborted', charged: 'unknown' })
    expect(claims).toEqual([0, 0, 100, 300, 700])
  })
})

describe('an order whose stored id is all that is known of it', () => {
  const unreadable = { state: 'created', ambiguous: false, order: { id: 'o1' }, hold: 'refused' } as const
  const aged = { ...unreadable, firstSentAt: NOW - 2 * WINDOW }

  it('is read by it, remembered, and told with what came with the answer', async () => {
    const place = placeWith([answer(200, ORDER, { 'x-request-id': 'req-1' })])
    const { record } = await left(place, { ...aged, busyUntil: NOW - 1 })
    const { value, info } = await placed(place, NAMED)
    expect(value).toEqual(ORDER)
    expect(place.requests).toMatchObject([{ method: 'GET', url: 'https://api.example.com/v1/orders/o1' }])
    expect(info).toMatchObject({
      status: 200,
      requestId: 'req-1',
      attempts: 1,
      replayed: true,
      idempotencyKey: record.key,
    })
    expect(info.headers().get('x-request-id')).toBe('req-1')
    const stored = await recordOf(place.context, 'ref:r1')
    expect(stored).toMatchObject({ state: 'created', readable: true, order: ORDER, version: 2 })
    expect(stored).not.toHaveProperty('body')
    expect(stored).not.toHaveProperty('busyUntil')
    expect(place.settled).toMatchObject([
      { operation: 'orders.retrieve', ok: true },
      { operation: 'orders.create', ok: true, remembered: true },
    ])
  })

  it('is returned also where it cannot be stored, or somebody else has done so', async () => {
    for (const [remembered, update] of [
      [true, () => Promise.resolve(false)],
      [false, () => Promise.reject(new Error('gone'))],
    ] as const) {
      const place = placeWith([answer(200, ORDER)])
      await left(place, aged)
      place.store.update = update
      expect((await placed(place, NAMED)).value).toEqual(ORDER)
      expect(place.settled.at(-1)).toMatchObject({ ok: true, charged: 'yes', remembered })
    }
  })

  it.each(['..', '', ' '])('needs a person where the id cannot be one: %j', async (id) => {
    const place = placeWith([answer(200, ORDER)])
    await left(place, { ...aged, order: { id } })
    await expect(placed(place, NAMED)).rejects.toMatchObject({
      code: 'unresolved_order',
      charged: 'yes',
      message: expect.stringContaining('was created, but its answer was never readable'),
    })
    expect(place.requests).toEqual([])
  })
})

describe('a remembered order', () => {
  const created = { state: 'created', ambiguous: false, readable: true, order: ORDER } as const

  it('needs no API key', async () => {
    const place = placeWith([], {
      credentials: { rotates: true, get: () => Promise.reject(new Error('the vault is down')) },
    })
    await left(place, created)
    expect((await placed(place, NAMED)).value).toEqual(ORDER)
    expect(place.settled).toMatchObject([{ ok: true, charged: 'yes', remembered: true }])
  })

  it('is charged also where the caller has given up before it was looked for', async () => {
    const place = placeWith([])
    const { record } = await left(place, created)
    const settings = { signal: AbortSignal.abort() }
    await expect(placed(place, NAMED, { settings })).rejects.toMatchObject({
      code: 'aborted',
      charged: 'yes',
    })
    expect(await recordOf(place.context, 'ref:r1')).toEqual(record)
  })

  it('needs a person where it is no order any more', async () => {
    const place = placeWith([])
    await left(place, { ...created, order: { id: 'o1' } })
    await expect(placed(place, NAMED)).rejects.toMatchObject({
      code: 'unresolved_order',
      charged: 'yes',
      orderId: 'o1',
      message: expect.stringContaining('was created, but its answer was never readable'),
    })
  })
})

describe('a call that ends before it claims the order', () => {
  const VAULT = new Error('the vault is down')
  const failing: Credentials = { rotates: true, get: () => Promise.reject(VAULT) }
  const CREATED_BEFORE = { state: 'created', ambiguous: false, readable: true, order: ORDER } as const
  const REFUSED_BEFORE = {
    state: 'rejected',
    ambiguous: false,
    refused: true,
    rejection: { kind: 'refused', status: 402 },
  } as const

  it('charges nothing where nothing is remembered, and leaves a closed record so that nothing else can open one', async () => {
    const place = placeWith([], { credentials: failing })
    await expect(placed(place, NAMED)).rejects.toMatchObject({
      code: 'configuration',
      charged: 'no',
      attempts: 0,
      externalOrderId: 'r1',
      cause: VAULT,
    })
    const stored = await recordOf(place.context, 'ref:r1')
    expect(stored).toMatchObject({ state: 'rejected', rejection: { kind: 'cancelled' }, attempts: 0 })
    expect(stored).not.toHaveProperty('body')
  })

  it('keeps the key of a deliberate duplicate in that record', async () => {
    const place = placeWith([], { credentials: failing })
    const error = await placed(place, UNNAMED, { allowDuplicate: true }).catch((caught: unknown) => caught)
    expect(error).toMatchObject({ charged: 'no' })
    const records = await storedRecords(place.context)
    expect(records).toMatchObject([{ record: { state: 'rejected', keyOrigin: 'random' } }])
    expect(records[0]?.record.slot).toBe(`key:${records[0]?.record.key}`)
  })

  it('charges nothing where the order was refused before, and writes that record anew', async () => {
    const place = placeWith([], { credentials: failing })
    const { record } = await left(place, REFUSED_BEFORE)
    await expect(placed(place, NAMED)).rejects.toMatchObject({ charged: 'no', idempotencyKey: record.key })
    const { claim, version, ...stored } = { ...(await recordOf(place.context, 'ref:r1')) }
    const { claim: before, version: _version, ...same } = record
    expect(stored).toEqual(same)
    expect(version).toBe(2)
    expect(claim).not.toBe(before)
  })

  it('does not know of an order that is open, and leaves it alone', async () => {
    const place = placeWith([], { credentials: failing })
    const { record } = await left(place)
    await expect(placed(place, NAMED)).rejects.toMatchObject({
      charged: 'unknown',
      idempotencyKey: record.key,
    })
    expect(await recordOf(place.context, 'ref:r1')).toEqual(record)
  })

  it('says yes of an order that exists and was never readable', async () => {
    const place = placeWith([], { credentials: failing })
    await left(place, { state: 'created', ambiguous: false })
    await expect(placed(place, NAMED)).rejects.toMatchObject({ charged: 'yes' })
  })

  it('says nothing of the order before in the slot of one without a name, unless that is not readable', async () => {
    const slot = (place: Place): string =>
      readIntent(place.context.connection.runtime.deriveId, UNNAMED, {}).slot
    const place = placeWith([], { credentials: failing })
    const { record } = await left(place, CREATED_BEFORE, UNNAMED)
    const error = await placed(place, UNNAMED).catch((caught: unknown) => caught)
    expect(error).toMatchObject({ charged: 'no' })
    expect(error).not.toHaveProperty('idempotencyKey')
    expect(await recordOf(place.context, slot(place))).toMatchObject({
      state: 'created',
      key: record.key,
      version: 2,
    })
    const other = placeWith([], { credentials: failing })
    await left(other, { ...CREATED_BEFORE, readable: false }, UNNAMED)
    await expect(placed(other, UNNAMED)).rejects.toMatchObject({ charged: 'yes' })
  })

  it('goes by what a name stands for by now, and by its own order where there is no name', async () => {
    const abandoned = async (request: CreateOrderRequest): Promise<unknown> => {
      const place = placeWith([], {
        credentials: {
          rotates: true,
          get: async () => {
            const closed = { state: 'rejected', rejection: { kind: 'abandoned' }, ambiguous: false } as const
            await remember(place.context, { ...found.record, ...closed, key: 'the next one' }, found)
            throw new Error('gone')
          },
        },
      })
      const found = await left(place, {}, request)
      return await placed(place, request).catch((caught: unknown) => caught)
    }
    expect(await abandoned(NAMED)).toMatchObject({ charged: 'no', idempotencyKey: 'the next one' })
    expect(await abandoned(UNNAMED)).toMatchObject({ charged: 'unknown' })
  })

  it('does not know of an order without a name whose record is gone', async () => {
    const place = placeWith([], { credentials: failing })
    const { record } = await left(place, {}, UNNAMED)
    const { get } = place.store
    place.store.get = async (scope, id) => {
      const row = await get.call(place.store, scope, id)
      place.store.get = () => Promise.resolve(undefined)
      return row
    }
    await expect(placed(place, UNNAMED)).rejects.toMatchObject({
      code: 'configuration',
      charged: 'unknown',
      idempotencyKey: record.key,
    })
  })

  it.each<[string, (place: Place) => void]>([
    [
      'be read',
      ({ store }) => {
        store.get = () => Promise.reject(new Error('gone'))
      },
    ],
    [
      'be read in time',
      ({ store }) => {
        store.get = () => new Promise(() => {})
      },
    ],
    [
      'be written',
      ({ store }) => {
        store.insert = () => Promise.reject(new Error('gone'))
      },
    ],
  ])('does not know where the store cannot %s', async (_what, breaks) => {
    const place = placeWith([], {
      credentials: {
        rotates: true,
        get: async () => {
          breaks(place)
          throw VAULT
        },
      },
    })
    const before = place.runtime.now()
    await expect(placed(place, NAMED)).rejects.toMatchObject({ code: 'configuration', charged: 'unknown' })
    expect(place.runtime.now() - before).toBeLessThanOrEqual(450)
  })

  it('charges nothing at its deadline, or when its caller gives up', async () => {
    const waiting = placeWith([], { credentials: { rotates: true, get: () => new Promise(() => {}) } })
    await expect(placed(waiting, NAMED)).rejects.toMatchObject({
      code: 'timeout',
      charged: 'no',
      attempts: 0,
    })
    expect(waiting.runtime.now() - NOW).toBe(2 * MINUTE)
    const aborted = placeWith([])
    const signal = AbortSignal.abort(VAULT)
    await expect(placed(aborted, NAMED, { settings: { signal } })).rejects.toMatchObject({
      code: 'aborted',
      charged: 'no',
      cause: VAULT,
    })
    expect(await recordOf(aborted.context, 'ref:r1')).toMatchObject({ rejection: { kind: 'cancelled' } })
  })

  it('charges nothing where the order before it could not be archived, and leaves that where it is', async () => {
    const place = placeWith([])
    const { record } = await left(place, CREATED_BEFORE, UNNAMED)
    const gone = new Error('gone')
    place.store.insert = () => Promise.reject(gone)
    const error = await placed(place, UNNAMED).catch((caught: unknown) => caught)
    expect(error).toMatchObject({ code: 'store', charged: 'no', cause: gone })
    expect(error).not.toHaveProperty('idempotencyKey')
    expect(await recordOf(place.context, record.slot)).toMatchObject({ key: record.key, order: ORDER })

    const slow = placeWith([])
    await left(slow, CREATED_BEFORE, UNNAMED)
    slow.store.insert = () => new Promise(() => {})
    await expect(placed(slow, UNNAMED, { settings: { totalTimeout: 1000 } })).rejects.toMatchObject({
      code: 'timeout',
      charged: 'no',
    })
  })

  /** A call whose store reads so slowly, and keeps the order before without ever saying so. */
  async function archivedLate(reads: number, takesUpdates: boolean) {
    const place = placeWith([])
    const { record } = await left(place, CREATED_BEFORE, UNNAMED)
    const { runtime, store, context } = place
    const { get, insert, update } = store
    const updated: unknown[] = []
    store.get = async (scope, id) => {
      await new Promise<void>((resolve) => void runtime.setTimer(resolve, reads))
      return await get.call(store, scope, id)
    }
    store.insert = async (row) => {
      await insert.call(store, row)
      return await new Promise(() => {})
    }
    store.update = async (row, version) => {
      updated.push(JSON.parse(row.data).state)
      return takesUpdates ? await update.call(store, row, version) : await new Promise(() => {})
    }
    const error = await placed(place, UNNAMED, { settings: { totalTimeout: 1000 } }).catch(
      (caught: unknown) => caught,
    )
    const took = runtime.monotonic()
    expect(await recordOf(context, record.slot)).toMatchObject({ key: record.key, order: ORDER })
    return { error, took, updated }
  }

  it('charges nothing and claims nothing where that took the rest of its time, of which the slot is told', async () => {
    const { error, took, updated } = await archivedLate(60, true)
    expect(error).toMatchObject({ code: 'timeout', charged: 'no', attempts: 0 })
    expect(updated).toEqual(['created'])
    expect(took).toBe(1000 + 225 + 60 + 60)
  })

  it('ends within a second after its time, whatever its writes before have taken of that', async () => {
    const hanging = await archivedLate(60, false)
    expect(hanging.error).toMatchObject({ code: 'timeout', charged: 'unknown', attempts: 0 })
    expect(hanging.updated).toEqual(['created'])
    expect(hanging.took).toBe(1500 + 225 + 60)

    const slow = await archivedLate(200, false)
    expect(slow.error).toMatchObject({ code: 'timeout', charged: 'unknown', attempts: 0 })
    expect(slow.updated).toEqual([])
    expect(slow.took).toBe(1500)
  })
})

describe('a claim that is not stored', () => {
  const gone = new Error('gone')

  it('is closed where it may still be stored, so that nothing can be bought', async () => {
    const place = placeWith([])
    const { insert } = place.store
    place.store.insert = () => {
      place.store.insert = insert
      return Promise.reject(gone)
    }
    const error = await placed(place, NAMED).catch((caught: unknown) => caught)
    const stored = await recordOf(place.context, 'ref:r1')
    expect(stored).toMatchObject({ state: 'rejected', rejection: { kind: 'cancelled' }, attempts: 0 })
    expect(error).toMatchObject({
      code: 'store',
      charged: 'no',
      cause: gone,
      idempotencyKey: stored?.key,
      externalOrderId: 'r1',
    })
    expect(place.requests).toEqual([])
  })

  it('is in doubt where it cannot be closed either, which is not waited for any longer than a moment', async () => {
    const place = placeWith([])
    place.store.insert = () => Promise.reject(gone)
    await expect(placed(place, NAMED)).rejects.toMatchObject({
      code: 'store',
      charged: 'unknown',
      cause: gone,
    })
    const hanging = placeWith([])
    hanging.store.insert = () => new Promise(() => {})
    await expect(placed(hanging, NAMED, { settings: { totalTimeout: 2000 } })).rejects.toMatchObject({
      code: 'timeout',
      charged: 'unknown',
      attempts: 0,
    })
    // Half of the grace for either write.
    expect(hanging.runtime.now() - NOW).toBe(2450)
  })

  it('keeps what was heard before, under whatever key', async () => {
    const refused = { kind: 'refused', status: 402, code: 'NO' } as const
    for (const options of [{}, { idempotencyKey: 'k2' }]) {
      const place = placeWith([])
      await left(place, { state: 'rejected', ambiguous: false, refused: true, rejection: refused })
      const { update } = place.store
      place.store.update = () => {
        place.store.update = update
        return Promise.reject(gone)
      }
      await expect(placed(place, NAMED, options)).rejects.toMatchObject({ code: 'store', charged: 'no' })
      expect(await recordOf(place.context, 'ref:r1')).toMatchObject({ state: 'rejected', rejection: refused })
    }
  })

  it('waits a moment for what closes it', async () => {
    const place = placeWith([])
    const { insert } = place.store
    let inserts = 0
    place.store.insert = async (row) => {
      if (++inserts === 1) throw gone
      await new Promise<void>((resolve) => void place.runtime.setTimer(resolve, 300))
      return await insert.call(place.store, row)
    }
    await expect(placed(place, NAMED)).rejects.toMatchObject({ code: 'store', charged: 'no' })
  })

  it('leaves an order in doubt as it is', async () => {
    const place = placeWith([])
    const { record } = await left(place)
    const { update } = place.store
    place.store.update = () => {
      place.store.update = update
      return Promise.reject(gone)
    }
    await expect(placed(place, NAMED)).rejects.toMatchObject({
      code: 'store',
      charged: 'unknown',
      idempotencyKey: record.key,
    })
    expect(await recordOf(place.context, 'ref:r1')).toEqual(record)
  })
})

describe('an order that was refused before', () => {
  const refused = {
    state: 'rejected',
    ambiguous: false,
    refused: true,
    rejection: { kind: 'refused', status: 402, code: 'NO' },
  } as const
  const REFUSED = answer(402, { code: 'NO', message: 'no' })

  it.each([
    [2, 'before this call', -1],
    [2, 'at the moment of this call', 0],
    [1, 'after this call was made', 1],
    [1, 'half a minute after it', 30_000],
    // Its first key is not sent at all: nobody knows how old it is.
    [1, 'later, by a clock that was wrong', 30_001],
  ])('is sent under %i keys, if it was refused %s', async (count, _when, ahead) => {
    const place = placeWith([REFUSED, CREATED])
    place.runtime.jump(ahead)
    await left(place, refused)
    place.runtime.jump(-ahead)
    await placed(place, NAMED, { settings: { maxRetries: 1 } }).catch(() => {})
    expect(new Set(place.requests.map(({ headers }) => headers['idempotency-key'])).size).toBe(count)
  })

  it('goes on under a key that the caller gives, whatever its own was', async () => {
    const place = placeWith([CREATED])
    await left(place, { ...refused, key: 'not derived from it' })
    await expect(placed(place, NAMED)).rejects.toMatchObject({ code: 'store', charged: 'unknown' })
    expect((await placed(place, NAMED, { idempotencyKey: 'k2' })).info.idempotencyKey).toBe('k2')
  })
})

describe('the claim of an order', () => {
  const claimedBy = async (
    request: CreateOrderRequest,
    prepare: (place: Place) => Promise<unknown> = async () => {},
  ) => {
    const claims: unknown[] = []
    const { slot } = readIntent(fakeRuntime().deriveId, request, {})
    const place = placeWith([
      async () => {
        claims.push(await recordOf(place.context, slot))
        return CREATED
      },
    ])
    await prepare(place)
    place.runtime.jump(5)
    await placed(place, request)
    return { place, claim: claims[0] }
  }
  const NOW_5 = NOW + 5

  it('says until when this call may send, under which API key, and that it is the first', async () => {
    const { place, claim } = await claimedBy(NAMED)
    const key = place.requests[0]?.headers['idempotency-key'] ?? ''
    expect(claim).toMatchObject({
      state: 'open',
      ambiguous: false,
      firstSentAt: NOW_5,
      busyUntil: NOW_5 + 2 * MINUTE,
      apiKeyTag: tagOf(place.context, key, API_KEY),
      createdAt: NOW_5,
      version: 1,
    })
  })

  it('takes one look, also at an order without a name that is in doubt', async () => {
    const place = placeWith([CREATED])
    await left(place, {}, UNNAMED)
    const { get, update } = place.store
    const calls: string[] = []
    place.store.get = (scope, id) => {
      calls.push('get')
      return get.call(place.store, scope, id)
    }
    place.store.update = (row, version) => {
      calls.push('update')
      return update.call(place.store, row, version)
    }
    await placed(place, UNNAMED)
    expect(calls.slice(0, 2)).toEqual(['get', 'update'])
  })

  it('of an order that an earlier call may have sent, goes on in doubt and in its window', async () => {
    let before = ''
    const { claim } = await claimedBy(NAMED, async (place) => {
      const { record } = await left(place, { ambiguous: false, hold: 'refused', claim: 'of another' })
      before = record.key
    })
    expect(claim).toMatchObject({
      key: before,
      ambiguous: true,
      firstSentAt: NOW,
      busyUntil: NOW_5 + 2 * MINUTE,
      attempts: 1,
      version: 2,
    })
    expect(claim).not.toHaveProperty('hold')
    expect(claim).not.toMatchObject({ claim: 'of another' })
  })

  it('of an order that waited to be sent, is its first', async () => {
    const rejection = { kind: 'refused', status: 402 } as const
    const { claim, place } = await claimedBy(NAMED, async (made) => {
      const { record, id, row } = await left(made, {
        apiKeyTag: '',
        ambiguous: false,
        attempts: 0,
        rejection,
      })
      const { firstSentAt: _sent, ...unsent } = record
      await remember(made.context, unsent, { id, row, record })
    })
    const key = place.requests[0]?.headers['idempotency-key'] ?? ''
    expect(claim).toMatchObject({
      ambiguous: false,
      firstSentAt: NOW_5,
      apiKeyTag: tagOf(place.context, key, API_KEY),
    })
    expect(claim).not.toHaveProperty('rejection')
  })

  it('of a new order in a used slot, begins its own times and attempts, also where the one before is archived already', async () => {
    for (const archived of [false, true]) {
      const { claim } = await claimedBy(UNNAMED, async (place) => {
        const created = { state: 'created', ambiguous: false, readable: true, order: ORDER } as const
        const { record } = await left(place, created, UNNAMED)
        if (archived)
          await remember(place.context, { ...record, slot: `key:${record.key}`, claim: 'of another' })
      })
      expect(claim).toMatchObject({ createdAt: NOW_5, firstSentAt: NOW_5, attempts: 0, version: 2 })
    }
  })

  it('asks for the API key once, however often it looks', async () => {
    let asked = 0
    const place = placeWith([CREATED], {
      credentials: {
        rotates: true,
        get: () => {
          asked++
          return API_KEY
        },
      },
    })
    await left(place, { busyUntil: NOW + 10_000 })
    await placed(place, NAMED)
    expect(asked).toBe(1)
  })
})

describe('an order whose record somebody else has written meanwhile', () => {
  const overtaken = (
    changes: Partial<RecordContent>,
    before: (place: Place) => Promise<void> | void = () => {},
  ): Place => {
    const place = placeWith([
      async () => {
        for (const found of await storedRecords(place.context))
          await remember(place.context, { ...found.record, claim: 'of another', ...changes }, found)
        await before(place)
        return answer(402, { code: 'NO', message: 'no' })
      },
    ])
    return place
  }

  it('is returned if it exists', async () => {
    const place = overtaken({ state: 'created', readable: true, order: ORDER })
    const { value, info } = await placed(place, NAMED)
    expect(value).toEqual(ORDER)
    expect(info).toMatchObject({ attempts: 0, replayed: true })
  })

  it('is not returned if it has another payload, but the wallet was charged for it', async () => {
    const other = {
      state: 'created',
      readable: true,
      order: ORDER,
      fingerprint: 'of another payload',
    } as const
    await expect(placed(overtaken(other), NAMED)).rejects.toMatchObject({ status: 402, charged: 'yes' })
  })

  it.each<[string, Partial<RecordContent>]>([
    ['yes', { state: 'created', order: { id: 'o1' } }],
    ['unknown', {}],
    ['unknown', { state: 'rejected', rejection: { kind: 'refused' } }],
    // Only its state says that an order exists.
    ['unknown', { state: 'rejected', rejection: { kind: 'refused' }, readable: true, order: ORDER }],
  ])('is told as charged %s by what is stored: %j', async (charged, changes) => {
    await expect(placed(overtaken(changes), NAMED)).rejects.toMatchObject({ charged })
  })

  it('is unknown where that cannot be read, and the call ends within a second after its time', async () => {
    const hanging = overtaken({}, ({ store }) => {
      store.get = () => new Promise(() => {})
    })
    await expect(placed(hanging, NAMED)).rejects.toMatchObject({ charged: 'unknown' })
    expect(hanging.runtime.monotonic()).toBe(900)
    const late = overtaken({}, ({ store, runtime }) => {
      store.get = () => new Promise(() => {})
      return new Promise((resolve) => void runtime.setTimer(resolve, 1000))
    })
    await expect(placed(late, NAMED, { settings: { totalTimeout: 1000 } })).rejects.toMatchObject({
      charged: 'unknown',
    })
    expect(late.runtime.monotonic()).toBe(1900)
    const gone = overtaken({}, ({ store }) => {
      store.get = () => Promise.reject(new Error('gone'))
    })
    await expect(placed(gone, NAMED)).rejects.toMatchObject({ charged: 'unknown' })
  })
})

describe('an order that is read by its id', () => {
  const aged = {
    state: 'created',
    ambiguous: false,
    order: { id: 'o1' },
    firstSentAt: NOW - 2 * WINDOW,
  } as const

  it('is asked for again as long as there is time', async () => {
    const place = placeWith([answer(503), answer(503), answer(200, ORDER)])
    await left(place, aged)
    expect((await placed(place, NAMED, { settings: { maxRetries: 2 } })).info.attempts).toBe(2 + 1)
    const late = placeWith([answer(503)])
    await left(late, aged)
    const settings = { maxRetries: 1000, totalTimeout: 20_000 }
    await expect(placed(late, NAMED, { settings })).rejects.toMatchObject({ code: 'server', charged: 'yes' })
    expect(late.runtime.monotonic()).toBeLessThanOrEqual(20_000)
  })

  it('has no more time than is left after somebody else has tried', async () => {
    const place = placeWith([answer(503)])
    await left(place, { ...aged, busyUntil: NOW + 15_000 })
    const settings = { maxRetries: 1000, totalTimeout: 20_000 }
    await expect(placed(place, NAMED, { settings })).rejects.toMatchObject({ code: 'server', charged: 'yes' })
    expect(place.runtime.monotonic()).toBeLessThanOrEqual(20_000)
  })

  it('does not need the body that was sent', async () => {
    const place = placeWith([answer(200, ORDER)])
    await left(place, { ...aged, body: 'damaged' })
    expect((await placed(place, NAMED)).value).toEqual(ORDER)
  })
})

describe('two calls of one process for the same order', () => {
  /** Runs the second call while the first waits for its answer, which it gets once the second has ended or waits, too. */
  const beside = async (
    first: Given,
    second: (place: Place) => Promise<OrderReply<Order>>,
  ): Promise<{ place: Place; reads: number; one: OrderReply<Order>; two: OrderReply<Order> | Error }> => {
    let reply: () => void = () => {}
    const replied = new Promise<void>((resolve) => {
      reply = resolve
    })
    const place = placeWith([
      async () => {
        await replied
        return CREATED
      },
    ])
    let reads = 0
    const { get } = place.store
    place.store.get = (...of) => {
      reads++
      return get.apply(place.store, of)
    }
    place.runtime.auto = false
    const running = placed(place, NAMED, first)
    await place.runtime.settle()
    const ending = second(place).catch((error: Error) => error)
    const early = await Promise.race([ending, place.runtime.settle()])
    reply()
    const one = await running
    await place.runtime.settle()
    return { place, reads, one, two: early ?? (await ending) }
  }

  it.each<[string, Given, (place: Place) => Given]>([
    ['without keys', {}, () => ({})],
    ['with the same key', { idempotencyKey: 'k1' }, () => ({ idempotencyKey: 'k1' })],
    ['with a key in the first only', { idempotencyKey: 'k1' }, () => ({})],
    [
      'where the second gives the key that the first has made',
      {},
      ({ context }) => ({ idempotencyKey: makeKey(context, 'r1', 0).key }),
    ],
  ])('place it once, and the second does not even ask the store: %s', async (_what, first, second) => {
    const { place, reads, one, two } = await beside(first, (made) => placed(made, NAMED, second(made)))
    expect(two).toMatchObject({ value: ORDER, info: { attempts: 0, replayed: true } })
    expect(two).toMatchObject({ info: { idempotencyKey: one.info.idempotencyKey } })
    expect('value' in two && two.value).not.toBe(one.value)
    expect(reads).toBe(1)
    expect(place.requests).toHaveLength(1)
  })

  it('tell another key and another payload apart at once', async () => {
    const otherKey = await beside({ idempotencyKey: 'k1' }, (made) =>
      placed(made, NAMED, { idempotencyKey: 'k2' }),
    )
    const otherPayload = await beside({}, (made) => placed(made, { ...NAMED, quantity: 2 }))
    const facts = { code: 'idempotency_conflict', charged: 'unknown', local: true }
    expect(otherKey).toMatchObject({ two: { ...facts, fields: ['idempotencyKey'] }, reads: 1 })
    expect(otherPayload).toMatchObject({ two: { ...facts, fields: ['quantity'] }, reads: 1 })
  })

  it('leave it to the record whether the key of the second is that which the first has made', async () => {
    const { two, reads } = await beside({}, (made) => placed(made, NAMED, { idempotencyKey: 'k2' }))
    expect(two).toMatchObject({ code: 'idempotency_conflict', charged: 'yes', fields: ['idempotencyKey'] })
    expect(reads).toBe(2)
  })
})

describe('a record that is not what it was', () => {
  const DAMAGED = expect.stringContaining('(damaged, or written with another codec)')

  it('is not gone on with: nothing is sent', async () => {
    const unreadable = { state: 'created', ambiguous: false } as const
    const refused = { state: 'rejected', ambiguous: false, rejection: { kind: 'refused' } } as const
    for (const changes of [{}, unreadable, refused]) {
      const place = placeWith([CREATED])
      await left(place, { ...changes, body: '{"quantity":7}' })
      await expect(placed(place, NAMED)).rejects.toMatchObject({ code: 'store', message: DAMAGED })
      expect(place.requests).toEqual([])
    }
  })

  it('is no other order’s', async () => {
    const place = placeWith([CREATED])
    const { record } = await left(place, {}, { ...UNNAMED, metadata: { externalOrderId: 'r2' } })
    const id = rowIdOf(place.runtime.deriveId, 'ref:r1')
    await remember(place.context, record, { id })
    await expect(placed(place, NAMED)).rejects.toMatchObject({ code: 'store', message: DAMAGED })
  })
})

describe('an order without a name that was refused', () => {
  it('is a new one when it is asked for again: its key, its times and its attempts are its own', async () => {
    const claims: unknown[] = []
    const place = placeWith([
      async () => {
        claims.push(await recordOf(place.context, before.record.slot))
        return CREATED
      },
    ])
    const before = await left(
      place,
      { state: 'rejected', ambiguous: false, refused: true, rejection: { kind: 'refused' }, attempts: 3 },
      UNNAMED,
    )
    place.runtime.jump(5)
    const { info } = await placed(place, UNNAMED)
    expect(info.replayed).toBe(false)
    expect(info.idempotencyKey).not.toBe(before.record.key)
    expect(claims).toMatchObject([
      { key: info.idempotencyKey, attempts: 0, refused: false, createdAt: NOW + 5, version: 2 },
    ])
  })
})
