import { describe, expect, it } from 'vitest'
import type { AttemptResult } from '../../../src/http/attempt.ts'
import type { CallSettings } from '../../../src/http/call.ts'
import { askedContent, makeKey, tagOf } from '../../../src/orders/claim.ts'
import { type PlaceOrderOptions, placeOrder } from '../../../src/orders/create.ts'
import { rowIdOf } from '../../../src/orders/identity.ts'
import { readIntent } from '../../../src/orders/intent.ts'
import type { FoundRecord } from '../../../src/orders/journal.ts'
import type { RecordContent } from '../../../src/orders/record.ts'
import type { OrderReply } from '../../../src/orders/reply.ts'
import type { CreateOrderRequest, Order } from '../../../src/schemas/order.ts'
import { recordOf, remember, storedRecords } from '../../support/order-context.ts'
import {
  API_KEY,
  answer,
  beforeCall,
  CREATED,
  callSettings,
  fails,
  GONE,
  hangs,
  inPlaceOfNext,
  later,
  MINUTE,
  NOW,
  ORDER,
  type Place,
  type PlaceOptions,
  placeWith,
  problem,
  rotating,
  type Step,
  WINDOW,
} from '../../support/place.ts'
import { fakeRuntime } from '../../support/runtime.ts'
import { errorOf } from '../../support/service.ts'

const UNNAMED: CreateOrderRequest = { serviceId: 's', target: 't', quantity: 1 }
const NAMED: CreateOrderRequest = { ...UNNAMED, metadata: { externalOrderId: 'r1' } }

type Given = Partial<Omit<PlaceOrderOptions<Order>, 'settings'>> & {
  readonly settings?: Partial<CallSettings>
}

const placed = (
  { context }: Place,
  request: CreateOrderRequest = NAMED,
  { settings, ...options }: Given = {},
): Promise<OrderReply<Order>> =>
  placeOrder(context, request, {
    settings: callSettings(settings),
    finish: async ({ value }) => value,
    ...options,
  })
const refusal = (place: Place, settings: Partial<CallSettings> = {}, request = NAMED): Promise<unknown> =>
  errorOf(placed(place, request, { settings }))
const storedOf = ({ context }: Place, request = NAMED) => recordOf(context, slotOf(request))
const slotOf = (request: CreateOrderRequest): string => readIntent(fakeRuntime().deriveId, request, {}).slot
const keysOf = ({ requests }: Place) => requests.map(({ headers }) => headers['idempotency-key'])

/** Stores a record of the order, as an earlier call left it. */
async function left(
  { context }: Place,
  changes: Partial<RecordContent> = {},
  request: CreateOrderRequest = NAMED,
): Promise<FoundRecord> {
  const { runtime } = context.connection
  const content = askedContent(context, readIntent(runtime.deriveId, request, {}), undefined, {
    moved: false,
  })
  return await remember(context, {
    ...content,
    ambiguous: true,
    attempts: 1,
    firstSentAt: runtime.now(),
    apiKeyTag: tagOf(context, content.key, API_KEY),
    ...changes,
  })
}

/** Stores a record of the order as it waits to be sent. */
async function queued(place: Place, changes: Partial<RecordContent> = {}): Promise<void> {
  const unclaimed = { apiKeyTag: '', ambiguous: false, attempts: 0 }
  const { record, id, row } = await left(place, { ...unclaimed, ...changes })
  const { firstSentAt: _sent, ...unsent } = record
  await remember(place.context, unsent, { id, row, record })
}

/** A service that responds so, and the record that an earlier call left. */
async function placeLeft(
  changes: Partial<RecordContent>,
  steps: readonly Step[] = [],
  { request = NAMED, ...given }: PlaceOptions & { readonly request?: CreateOrderRequest } = {},
): Promise<Place & { readonly found: FoundRecord }> {
  const place = placeWith(steps, given)
  return { ...place, found: await left(place, changes, request) }
}

const EXISTS = { state: 'created', ambiguous: false, readable: true, order: ORDER } as const
const REFUSED = {
  state: 'rejected',
  ambiguous: false,
  refused: true,
  rejection: { kind: 'refused', status: 402, code: 'NO' },
} as const
/** All that is known of the order is its id, and no key may be sent again. */
const AGED = {
  state: 'created',
  ambiguous: false,
  order: { id: 'o1' },
  firstSentAt: NOW - 2 * WINDOW,
} as const

describe('what comes with an order', () => {
  it('is what the answer said, how it was asked for, and by which names it is known', async () => {
    const place = placeWith([
      async ({ runtime }) => {
        await later(runtime, 700)
        return answer(201, ORDER, { 'x-request-id': 'req-1' })
      },
    ])
    const { value, info } = await placed(place)
    const [key] = keysOf(place)
    const names = {
      idempotencyKey: key,
      supportReference: { orderId: 'o1', idempotencyKey: key, externalOrderId: 'r1' },
    }
    expect(value).toEqual(ORDER)
    expect(Object.values(Object.getOwnPropertyDescriptors(info)).flatMap(({ get }) => get ?? [])).toEqual([])
    expect({ ...info, headers: [...info.headers()] }).toEqual({
      ...names,
      status: 201,
      requestId: 'req-1',
      attempts: 1,
      durationMs: 700,
      headers: [['x-request-id', 'req-1']],
    })
    expect(place.settled).toMatchObject([{ ok: true, durationMs: 700, attempts: 1, remembered: true }])
    const again = await placed(place)
    const remembered = { ...names, attempts: 0, durationMs: 0, replayed: true, headers: [] }
    expect({ ...again.info, headers: [...again.info.headers()] }).toEqual(remembered)
  })

  const replay = (value: string): AttemptResult => answer(201, ORDER, { 'idempotent-replayed': value })
  it.each<[boolean | undefined, string, (place: Place) => unknown, CreateOrderRequest, AttemptResult]>([
    [true, 'the service says true', () => {}, NAMED, replay('true')],
    [false, 'the service says false', () => {}, NAMED, replay('false')],
    [undefined, 'the service says nothing', () => {}, NAMED, CREATED],
    [undefined, 'the service says something else', () => {}, NAMED, replay('yes')],
    [false, 'the service says nothing of a key that is new', () => {}, UNNAMED, CREATED],
    [true, 'the service says true of a key that is new', () => {}, UNNAMED, replay('true')],
    [true, 'an earlier call may have sent it', left, NAMED, replay('false')],
    [true, 'it exists', (place) => left(place, { state: 'created', ambiguous: false }), NAMED, CREATED],
    [undefined, 'it only waited to be sent', queued, NAMED, CREATED],
  ])('is replayed (%s) where %s', async (replayed, _what, first, request, result) => {
    const place = placeWith([result])
    await first(place)
    expect((await placed(place, request)).info.replayed).toBe(replayed)
  })
})

describe('what hooks are told of a call', () => {
  it('counts the attempts and says what is stored, also where the caller’s schema fails', async () => {
    const place = placeWith([CREATED])
    const own = new Error('the caller’s own')
    expect(await errorOf(placed(place, NAMED, { finish: () => Promise.reject(own) }))).toBe(own)
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
      ({ store }) => {
        store.update = fails
        return CREATED
      },
    ])
    await placed(place)
    expect(place.settled).toMatchObject([{ ok: true, charged: 'yes', remembered: false, status: 201 }])
  })
})

describe('an order that another process is working on', () => {
  const ended = async (place: Place, milliseconds: number): Promise<unknown> => {
    const controller = new AbortController()
    place.runtime.setTimer(() => controller.abort(), milliseconds)
    return await refusal(place, { signal: controller.signal })
  }

  it('is looked at again after 50 ms, then after twice as long each time, and once a second at last', async () => {
    const place = await placeLeft({ busyUntil: NOW + MINUTE }, [CREATED])
    const looks: number[] = []
    beforeCall(place.store, 'get', () => looks.push(place.runtime.now() - NOW))
    expect(await ended(place, 5000)).toMatchObject({ code: 'aborted', charged: 'unknown', attempts: 0 })
    // The last look is for what can be said of the wallet.
    expect(looks).toEqual([0, 50, 150, 350, 750, 1550, 2550, 3550, 4550, 5000])
  })

  it('is claimed again at once if that one was faster, and given time if it is so again and again', async () => {
    const place = await placeLeft({}, [CREATED])
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
  const NEEDS_A_PERSON = {
    code: 'unresolved_order',
    charged: 'yes',
    message: expect.stringContaining('created it, but its response was never readable'),
  }

  it('is read by it, remembered, and told with what came with the answer', async () => {
    const place = await placeLeft({ ...AGED, hold: 'refused', busyUntil: NOW - 1 }, [
      answer(200, ORDER, { 'x-request-id': 'req-1' }),
    ])
    const { value, info } = await placed(place)
    expect(value).toEqual(ORDER)
    expect(place.requests).toMatchObject([{ method: 'GET', url: 'https://api.example.com/v1/orders/o1' }])
    const { key } = place.found.record
    const told = { status: 200, requestId: 'req-1', attempts: 1, replayed: true, idempotencyKey: key }
    expect(info).toMatchObject(told)
    expect(info.headers().get('x-request-id')).toBe('req-1')
    const stored = await storedOf(place)
    expect(stored).toMatchObject({ state: 'created', readable: true, order: ORDER, version: 2 })
    for (const field of ['body', 'busyUntil']) expect(stored).not.toHaveProperty(field)
    expect(place.settled).toMatchObject([
      { operation: 'orders.retrieve', ok: true },
      { operation: 'orders.create', ok: true, remembered: true },
    ])
  })

  it.each([
    ['cannot be stored', false, fails],
    ['is stored by somebody else', true, () => Promise.resolve(false)],
  ])('is returned also where it %s', async (_what, remembered, update) => {
    const place = await placeLeft(AGED, [answer(200, ORDER)])
    place.store.update = update
    expect((await placed(place)).value).toEqual(ORDER)
    expect(place.settled.at(-1)).toMatchObject({ ok: true, charged: 'yes', remembered })
  })

  it('does not need the body that was sent', async () => {
    const place = await placeLeft({ ...AGED, body: 'damaged' }, [answer(200, ORDER)])
    expect((await placed(place)).value).toEqual(ORDER)
  })

  it.each([
    ['the id cannot be one: ".."', { ...AGED, order: { id: '..' } }],
    ['the id cannot be one: ""', { ...AGED, order: { id: '' } }],
    ['the id cannot be one: " "', { ...AGED, order: { id: ' ' } }],
    ['the remembered order is no order any more', { ...EXISTS, order: { id: 'o1' } }],
  ])('needs a person where %s', async (_what, changes) => {
    const place = await placeLeft(changes, [answer(200, ORDER)])
    const { order, readable } = { readable: false, ...changes }
    expect(await refusal(place)).toMatchObject({
      ...NEEDS_A_PERSON,
      ...(readable ? { orderId: order.id } : {}),
    })
    expect(place.requests).toEqual([])
  })

  it('is asked for again as often as may be, and as long as there is time', async () => {
    const place = await placeLeft(AGED, [answer(503), answer(503), answer(200, ORDER)])
    expect((await placed(place, NAMED, { settings: { maxRetries: 2 } })).info.attempts).toBe(3)
  })

  it.each([
    ['more time than it has', {}],
    ['more time than is left after somebody else has tried', { busyUntil: NOW + 15_000 }],
  ])('takes no %s', async (_what, changes) => {
    const place = await placeLeft({ ...AGED, ...changes }, [answer(503)])
    const settings = { maxRetries: 1000, totalTimeout: 20_000 }
    expect(await refusal(place, settings)).toMatchObject({ code: 'server', charged: 'yes' })
    expect(place.runtime.monotonic()).toBeLessThanOrEqual(20_000)
  })
})

describe('a remembered order', () => {
  it('needs no API key', async () => {
    const place = await placeLeft(EXISTS, [], { credentials: rotating(fails) })
    expect((await placed(place)).value).toEqual(ORDER)
    expect(place.settled).toMatchObject([{ ok: true, charged: 'yes', remembered: true }])
  })

  it('is charged also where the caller has given up before it was looked for', async () => {
    const place = await placeLeft(EXISTS)
    const aborted = { code: 'aborted', charged: 'yes' }
    expect(await refusal(place, { signal: AbortSignal.abort() })).toMatchObject(aborted)
    expect(await storedOf(place)).toEqual(place.found.record)
  })
})

describe('a call that ends before it claims the order', () => {
  const VAULT = new Error('the vault is down')
  const keyless = { credentials: rotating(() => Promise.reject(VAULT)) }
  const CANCELLED = { state: 'rejected', rejection: { kind: 'cancelled' }, attempts: 0 }

  it('charges nothing where nothing is remembered, and leaves a closed record so that nothing else can open one', async () => {
    const place = placeWith([], keyless)
    const facts = { charged: 'no', attempts: 0, externalOrderId: 'r1', cause: VAULT }
    expect(await refusal(place)).toMatchObject({ code: 'configuration', ...facts })
    const stored = await storedOf(place)
    expect(stored).toMatchObject(CANCELLED)
    expect(stored).not.toHaveProperty('body')
  })

  it('keeps the key of a deliberate duplicate in that record', async () => {
    const place = placeWith([], keyless)
    const error = await errorOf(placed(place, UNNAMED, { allowDuplicate: true }))
    expect(error).toMatchObject({ charged: 'no' })
    const records = await storedRecords(place.context)
    expect(records).toMatchObject([{ record: { state: 'rejected', keyOrigin: 'random' } }])
    expect(records[0]?.record.slot).toBe(`key:${records[0]?.record.key}`)
  })

  it('charges nothing where the order was refused before, and writes that record anew', async () => {
    const { found, ...place } = await placeLeft(REFUSED, [], keyless)
    expect(await refusal(place)).toMatchObject({ charged: 'no', idempotencyKey: found.record.key })
    const stored = await storedOf(place)
    expect(stored).toEqual({ ...found.record, claim: expect.any(String), version: 2 })
    expect(stored?.claim).not.toBe(found.record.claim)
  })

  it('does not know of an order that is open, and leaves it alone', async () => {
    const { found, ...place } = await placeLeft({}, [], keyless)
    expect(await refusal(place)).toMatchObject({ charged: 'unknown', idempotencyKey: found.record.key })
    expect(await storedOf(place)).toEqual(found.record)
  })

  it.each([
    ['an order that exists and was never readable', { state: 'created', ambiguous: false }, NAMED],
    ['an order without a name that exists and was never readable', { ...EXISTS, readable: false }, UNNAMED],
  ] as const)('says yes of %s', async (_what, changes, request) => {
    const place = await placeLeft(changes, [], { ...keyless, request })
    expect(await refusal(place, {}, request)).toMatchObject({ charged: 'yes' })
  })

  it('says nothing of the order before in the slot of one without a name', async () => {
    const { found, ...place } = await placeLeft(EXISTS, [], { ...keyless, request: UNNAMED })
    const error = await refusal(place, {}, UNNAMED)
    expect(error).toMatchObject({ charged: 'no' })
    expect(error).not.toHaveProperty('idempotencyKey')
    const kept = { state: 'created', key: found.record.key, version: 2 }
    expect(await storedOf(place, UNNAMED)).toMatchObject(kept)
  })

  it.each([
    ['goes by what a name stands for by now', NAMED, { charged: 'no', idempotencyKey: 'the next one' }],
    ['goes by its own order where there is no name', UNNAMED, { charged: 'unknown' }],
  ])('%s', async (_what, request, expected) => {
    const closed = { state: 'rejected', rejection: { kind: 'abandoned' }, ambiguous: false } as const
    const place = await placeLeft({}, [], {
      request,
      credentials: rotating(async () => {
        const { context, found } = place
        await remember(context, { ...found.record, ...closed, key: 'the next one' }, found)
        throw GONE
      }),
    })
    expect(await refusal(place, {}, request)).toMatchObject(expected)
  })

  it('does not know of an order without a name whose record is gone', async () => {
    const { found, ...place } = await placeLeft({}, [], { ...keyless, request: UNNAMED })
    const row = await place.store.get('s', found.id)
    place.store.get = () => Promise.resolve(undefined)
    inPlaceOfNext(place.store, 'get', () => Promise.resolve(row))
    const unknown = { code: 'configuration', charged: 'unknown', idempotencyKey: found.record.key }
    expect(await refusal(place, {}, UNNAMED)).toMatchObject(unknown)
  })

  it.each([
    ['be read', { get: fails }],
    ['be read in time', { get: hangs }],
    ['be written', { insert: fails }],
  ])('does not know where the store cannot %s', async (_what, broken) => {
    const place = placeWith([], {
      credentials: rotating(async () => {
        Object.assign(place.store, broken)
        throw VAULT
      }),
    })
    expect(await refusal(place)).toMatchObject({ code: 'configuration', charged: 'unknown' })
    expect(place.runtime.now() - NOW).toBeLessThanOrEqual(450)
  })

  it('charges nothing at its deadline, or when its caller gives up', async () => {
    const waiting = placeWith([], { credentials: rotating(hangs) })
    expect(await refusal(waiting)).toMatchObject({ code: 'timeout', charged: 'no', attempts: 0 })
    expect(waiting.runtime.now() - NOW).toBe(2 * MINUTE)
    const place = placeWith()
    const aborted = { code: 'aborted', charged: 'no', cause: VAULT }
    expect(await refusal(place, { signal: AbortSignal.abort(VAULT) })).toMatchObject(aborted)
    expect(await storedOf(place)).toMatchObject({ rejection: { kind: 'cancelled' } })
  })
})

describe('a claim that is not stored', () => {
  it('is closed where it may still be stored, so that nothing can be bought', async () => {
    const place = placeWith()
    inPlaceOfNext(place.store, 'insert')
    const error = await refusal(place)
    const stored = await storedOf(place)
    expect(stored).toMatchObject({ state: 'rejected', rejection: { kind: 'cancelled' }, attempts: 0 })
    const names = { idempotencyKey: stored?.key, externalOrderId: 'r1' }
    expect(error).toMatchObject({ code: 'store', charged: 'no', cause: GONE, ...names })
    expect(place.requests).toEqual([])
  })

  it('is in doubt where it cannot be closed either, which is not waited for any longer than a moment', async () => {
    const place = placeWith()
    place.store.insert = fails
    expect(await refusal(place)).toMatchObject({ code: 'store', charged: 'unknown', cause: GONE })
    const hanging = placeWith()
    hanging.store.insert = hangs
    const unknown = { code: 'timeout', charged: 'unknown', attempts: 0 }
    expect(await refusal(hanging, { totalTimeout: 2000 })).toMatchObject(unknown)
    // Half of the grace for either write.
    expect(hanging.runtime.now() - NOW).toBe(2450)
  })

  it.each([{}, { idempotencyKey: 'k2' }])('keeps what was heard before, also with %j', async (options) => {
    const place = await placeLeft(REFUSED)
    inPlaceOfNext(place.store, 'update')
    const error = await errorOf(placed(place, NAMED, options))
    expect(error).toMatchObject({ code: 'store', charged: 'no' })
    expect(await storedOf(place)).toMatchObject({ state: 'rejected', rejection: REFUSED.rejection })
  })

  it('waits a moment for what closes it', async () => {
    const place = placeWith()
    beforeCall(place.store, 'insert', () => later(place.runtime, 300))
    inPlaceOfNext(place.store, 'insert')
    expect(await refusal(place)).toMatchObject({ code: 'store', charged: 'no' })
  })

  it('leaves an order in doubt as it is', async () => {
    const { found, ...place } = await placeLeft({})
    inPlaceOfNext(place.store, 'update')
    const unknown = { code: 'store', charged: 'unknown', idempotencyKey: found.record.key }
    expect(await refusal(place)).toMatchObject(unknown)
    expect(await storedOf(place)).toEqual(found.record)
  })
})

describe('an order that was refused before', () => {
  it.each([
    [2, 'before this call', -1],
    [2, 'at the moment of this call', 0],
    [1, 'after this call was made', 1],
    [1, 'half a minute after it', 30_000],
    // Its first key is not sent at all: nobody knows how old it is.
    [1, 'later, by a clock that was wrong', 30_001],
  ])('is sent under %i keys, if it was refused %s', async (count, _when, ahead) => {
    const place = placeWith([problem(402), CREATED])
    place.runtime.jump(ahead)
    await left(place, REFUSED)
    place.runtime.jump(-ahead)
    await placed(place, NAMED, { settings: { maxRetries: 1 } }).catch(() => {})
    expect(new Set(keysOf(place)).size).toBe(count)
  })

  it('goes on under a key that the caller gives, whatever its own was', async () => {
    const place = await placeLeft({ ...REFUSED, key: 'not derived from it' }, [CREATED])
    expect(await refusal(place)).toMatchObject({ code: 'store', charged: 'unknown' })
    expect((await placed(place, NAMED, { idempotencyKey: 'k2' })).info.idempotencyKey).toBe('k2')
  })
})

describe('the claim of an order', () => {
  const claimedBy = async (
    request: CreateOrderRequest,
    prepare: (place: Place) => Promise<unknown> = async () => {},
  ) => {
    const claims: unknown[] = []
    const place = placeWith([
      async ({ context }) => {
        claims.push(await recordOf(context, slotOf(request)))
        return CREATED
      },
    ])
    await prepare(place)
    place.runtime.jump(5)
    const { info } = await placed(place, request)
    const [key = ''] = keysOf(place)
    return { info, claim: claims[0], apiKeyTag: tagOf(place.context, key, API_KEY) }
  }
  const NOW_5 = NOW + 5
  const busyUntil = NOW_5 + 2 * MINUTE

  it('says until when this call may send, under which API key, and that it is the first', async () => {
    const { claim, apiKeyTag } = await claimedBy(NAMED)
    const times = { firstSentAt: NOW_5, busyUntil, createdAt: NOW_5 }
    expect(claim).toMatchObject({ state: 'open', ambiguous: false, apiKeyTag, version: 1, ...times })
  })

  it('takes one look, also at an order without a name that is in doubt', async () => {
    const place = await placeLeft({}, [CREATED], { request: UNNAMED })
    const calls: string[] = []
    beforeCall(place.store, 'get', () => calls.push('get'))
    beforeCall(place.store, 'update', () => calls.push('update'))
    await placed(place, UNNAMED)
    expect(calls.slice(0, 2)).toEqual(['get', 'update'])
  })

  it('of an order that an earlier call may have sent, goes on in doubt and in its window', async () => {
    let key = ''
    const { claim } = await claimedBy(NAMED, async (place) => {
      key = (await left(place, { ambiguous: false, hold: 'refused', claim: 'of another' })).record.key
    })
    const goesOn = { key, ambiguous: true, firstSentAt: NOW, busyUntil, attempts: 1, version: 2 }
    expect(claim).toMatchObject(goesOn)
    expect(claim).not.toHaveProperty('hold')
    expect(claim).not.toMatchObject({ claim: 'of another' })
  })

  it('of an order that waited to be sent, is its first', async () => {
    const rejection = { kind: 'refused', status: 402 } as const
    const { claim, apiKeyTag } = await claimedBy(NAMED, (place) => queued(place, { rejection }))
    expect(claim).toMatchObject({ ambiguous: false, firstSentAt: NOW_5, apiKeyTag })
    expect(claim).not.toHaveProperty('rejection')
  })

  it('of a new order in a used slot, begins its own times and attempts', async () => {
    const { claim } = await claimedBy(UNNAMED, async (place) => void (await left(place, EXISTS, UNNAMED)))
    expect(claim).toMatchObject({ createdAt: NOW_5, firstSentAt: NOW_5, attempts: 0, version: 2 })
  })

  it('of a refused order without a name, is that of a new one: its key, its times and its attempts', async () => {
    let refusedKey = ''
    const { claim, info } = await claimedBy(UNNAMED, async (place) => {
      refusedKey = (await left(place, { ...REFUSED, attempts: 3 }, UNNAMED)).record.key
    })
    expect(info.replayed).toBe(false)
    expect(info.idempotencyKey).not.toBe(refusedKey)
    const own = { key: info.idempotencyKey, attempts: 0, refused: false, createdAt: NOW_5, version: 2 }
    expect(claim).toMatchObject(own)
  })

  it('asks for the API key once, however often it looks', async () => {
    let asked = 0
    const credentials = rotating(() => {
      asked++
      return API_KEY
    })
    const place = await placeLeft({ busyUntil: NOW + 10_000 }, [CREATED], { credentials })
    await placed(place)
    expect(asked).toBe(1)
  })
})

describe('an order whose record somebody else has written meanwhile', () => {
  const overtaken = (
    changes: Partial<RecordContent>,
    then: (place: Place) => Promise<void> | void = () => {},
  ): Place =>
    placeWith([
      async (place) => {
        for (const found of await storedRecords(place.context))
          await remember(place.context, { ...found.record, claim: 'of another', ...changes }, found)
        await then(place)
        return problem(402)
      },
    ])

  it('is returned if it exists', async () => {
    const { value, info } = await placed(overtaken({ state: 'created', readable: true, order: ORDER }))
    expect(value).toEqual(ORDER)
    expect(info).toMatchObject({ attempts: 0, replayed: true })
  })

  const rejection = { kind: 'refused' } as const
  it.each<[string, Partial<RecordContent>]>([
    ['yes', { state: 'created', readable: true, order: ORDER, fingerprint: 'of another payload' }],
    ['yes', { state: 'created', order: { id: 'o1' } }],
    ['unknown', {}],
    ['unknown', { state: 'rejected', rejection }],
    // Only its state says that an order exists.
    ['unknown', { state: 'rejected', rejection, readable: true, order: ORDER }],
  ])('is told as charged %s by what is stored: %j', async (charged, changes) => {
    expect(await refusal(overtaken(changes))).toMatchObject({ status: 402, charged })
  })

  it('is unknown where that cannot be read, and the call ends within a second after its time', async () => {
    const unknown = { charged: 'unknown' }
    const hanging = overtaken({}, ({ store }) => {
      store.get = hangs
    })
    expect(await refusal(hanging)).toMatchObject(unknown)
    expect(hanging.runtime.monotonic()).toBe(900)
    const late = overtaken({}, ({ store, runtime }) => {
      store.get = hangs
      return later(runtime, 1000)
    })
    expect(await refusal(late, { totalTimeout: 1000 })).toMatchObject(unknown)
    expect(late.runtime.monotonic()).toBe(1900)
    const gone = overtaken({}, ({ store }) => {
      store.get = fails
    })
    expect(await refusal(gone)).toMatchObject(unknown)
  })
})

describe('two calls of one process for the same order', () => {
  /** Runs the second call while the first waits for its answer, which it gets once the second has ended or waits, too. */
  const beside = async (first: Given, second: (place: Place) => Promise<OrderReply<Order>>) => {
    let reply: () => void = () => {}
    const replied = new Promise<void>((resolve) => {
      reply = resolve
    })
    const place = placeWith([() => replied.then(() => CREATED)])
    let reads = 0
    beforeCall(place.store, 'get', () => reads++)
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
    const { idempotencyKey } = one.info
    expect(two).toMatchObject({ value: ORDER, info: { attempts: 0, replayed: true, idempotencyKey } })
    expect('value' in two && two.value).not.toBe(one.value)
    expect(reads).toBe(1)
    expect(place.requests).toHaveLength(1)
  })

  const mine = { idempotencyKey: 'k1' }
  it.each<[string, Given, CreateOrderRequest, Given, object]>([
    ['another key', mine, NAMED, { idempotencyKey: 'k2' }, { fields: ['idempotencyKey'] }],
    ['another payload', {}, { ...NAMED, quantity: 2 }, {}, { fields: ['quantity'] }],
  ])('tell %s apart at once', async (_what, first, request, second, facts) => {
    const { two, reads } = await beside(first, (made) => placed(made, request, second))
    expect(two).toMatchObject({ code: 'idempotency_conflict', charged: 'unknown', local: true, ...facts })
    expect(reads).toBe(1)
  })

  it('leave it to the record whether the key of the second is that which the first has made', async () => {
    const { two, reads } = await beside({}, (made) => placed(made, NAMED, { idempotencyKey: 'k2' }))
    expect(two).toMatchObject({ code: 'idempotency_conflict', charged: 'yes', fields: ['idempotencyKey'] })
    expect(reads).toBe(2)
  })
})

describe('a record that is not what it was', () => {
  const DAMAGED = {
    code: 'store',
    message: expect.stringContaining('(damaged, or written with another codec)'),
  }

  it.each([
    {},
    { state: 'created', ambiguous: false },
    { state: 'rejected', ambiguous: false, rejection: { kind: 'refused' } },
  ] as const)('is not gone on with, and nothing is sent: %j', async (changes) => {
    const place = await placeLeft({ ...changes, body: '{"quantity":7}' }, [CREATED])
    expect(await refusal(place)).toMatchObject(DAMAGED)
    expect(place.requests).toEqual([])
  })

  it('is no other order’s', async () => {
    const place = placeWith([CREATED])
    const { record } = await left(place, {}, { ...UNNAMED, metadata: { externalOrderId: 'r2' } })
    await remember(place.context, record, { id: rowIdOf(place.runtime.deriveId, 'ref:r1') })
    expect(await refusal(place)).toMatchObject(DAMAGED)
  })
})
