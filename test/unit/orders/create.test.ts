import { describe, expect, it } from 'vitest'
import type { AttemptResult } from '../../../src/http/attempt.ts'
import type { CallSettings } from '../../../src/http/call.ts'
import { askedContent, makeKey, tagOf } from '../../../src/orders/claim.ts'
import { type PlaceOrderOptions, placeOrder } from '../../../src/orders/create.ts'
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
  const intent = readIntent(runtime.deriveId, request, {})
  const content = askedContent(context, intent, undefined)
  return await remember(context, {
    ...content,
    ambiguous: true,
    attempts: 1,
    firstSentAt: runtime.now(),
    apiKeyTag: tagOf(context, content.key, API_KEY),
    ...changes,
  })
}

/** A service with these responses, and the record that an earlier call left. */
async function placeLeft(
  changes: Partial<RecordContent>,
  steps: readonly Step[] = [],
  { request = NAMED, ...given }: PlaceOptions & { readonly request?: CreateOrderRequest } = {},
): Promise<Place & { readonly found: FoundRecord }> {
  const place = placeWith(steps, given)
  return { ...place, found: await left(place, changes, request) }
}

const EXISTS = { state: 'created', ambiguous: false, readable: true, order: ORDER } as const
const rejection = { kind: 'refused', status: 402, code: 'NO' } as const
const REFUSED = { state: 'rejected', ambiguous: false, refused: true, rejection } as const
/** Only the order's id is known, and no key may be sent again. */
const KNOWN = { state: 'created', ambiguous: false, order: { id: 'o1' } } as const
const AGED = { ...KNOWN, firstSentAt: NOW - 2 * WINDOW }

describe('what comes with an order', () => {
  it('an order comes with the details of its response, its attempts and its names', async () => {
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
  ])('replayed is %s if %s', async (replayed, _what, first, request, result) => {
    const place = placeWith([result])
    await first(place)
    expect((await placed(place, request)).info.replayed).toBe(replayed)
  })
})

it("a caller's schema that throws is reported with the attempts of the call", async () => {
  const place = placeWith([CREATED])
  const own = new Error('the caller’s own')
  expect(await errorOf(placed(place, NAMED, { finish: () => Promise.reject(own) }))).toBe(own)
  expect(place.settled).toMatchObject([{ ok: false, attempts: 1, externalOrderId: 'r1', remembered: true }])
})

describe('an order that another process is working on', () => {
  const ended = async (place: Place, milliseconds: number): Promise<unknown> => {
    const controller = new AbortController()
    place.runtime.setTimer(() => controller.abort(), milliseconds)
    return await refusal(place, { signal: controller.signal })
  }

  it('an order in progress elsewhere is polled after 50 ms, then with doubling waits, up to a second', async () => {
    const place = await placeLeft({ busyUntil: NOW + MINUTE }, [CREATED])
    const looks: number[] = []
    beforeCall(place.store, 'get', () => looks.push(place.runtime.now() - NOW))
    expect(await ended(place, 5000)).toMatchObject({ code: 'aborted', charged: 'unknown', attempts: 0 })
    // The last read only determines the reported charge.
    expect(looks).toEqual([0, 50, 150, 350, 750, 1550, 2550, 3550, 4550, 5000])
  })

  it('a failed claim is repeated immediately, then with pauses', async () => {
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
  it.each([
    ['cannot be stored', false, fails],
    ['is stored by somebody else', true, () => Promise.resolve(false)],
  ])('an order known only by its id is returned even if it %s', async (_what, remembered, update) => {
    const place = await placeLeft(AGED, [answer(200, ORDER)])
    place.store.update = update
    expect((await placed(place)).value).toEqual(ORDER)
    expect(place.settled.at(-1)).toMatchObject({ ok: true, charged: 'yes', remembered })
  })

  it('an order that is remembered but no longer valid needs a person', async () => {
    const place = await placeLeft({ ...EXISTS, order: { id: 'o1' } }, [answer(200, ORDER)])
    expect(await refusal(place)).toMatchObject({
      code: 'unresolved_order',
      charged: 'yes',
      orderId: 'o1',
      message: expect.stringContaining('created it, but the response was never readable'),
    })
    expect(place.requests).toEqual([])
  })

  it('an order known only by its id is read with all retries while there is time', async () => {
    const place = await placeLeft(AGED, [answer(503), answer(503), answer(200, ORDER)])
    expect((await placed(place, NAMED, { settings: { maxRetries: 2 } })).info.attempts).toBe(3)
  })

  it.each([
    ['more time than it has', {}],
    ['more time than is left after somebody else has tried', { busyUntil: NOW + 15_000 }],
  ])('a read of an order known only by its id takes no %s', async (_what, changes) => {
    const place = await placeLeft({ ...AGED, ...changes }, [answer(503)])
    const settings = { maxRetries: 1000, totalTimeout: 20_000 }
    expect(await refusal(place, settings)).toMatchObject({ code: 'server', charged: 'yes' })
    expect(place.runtime.monotonic()).toBeLessThanOrEqual(20_000)
  })
})

describe('a call that ends before it claims the order', () => {
  const VAULT = new Error('the vault is down')
  const keyless = { credentials: rotating(() => Promise.reject(VAULT)) }

  it("a call without a claim keeps a deliberate duplicate's key in the closed record", async () => {
    const place = placeWith([], keyless)
    const error = await errorOf(placed(place, UNNAMED, { allowDuplicate: true }))
    expect(error).toMatchObject({ charged: 'no' })
    const records = await storedRecords(place.context)
    expect(records).toMatchObject([{ record: { state: 'rejected', keyOrigin: 'random' } }])
    expect(records[0]?.record.slot).toBe(`key:${records[0]?.record.key}`)
  })

  it.each([
    ['an order that exists and was never readable', { state: 'created', ambiguous: false }, NAMED],
    ['an order without a name that exists and was never readable', { ...EXISTS, readable: false }, UNNAMED],
  ] as const)('a call without a claim reports charged yes for %s', async (_what, changes, request) => {
    const place = await placeLeft(changes, [], { ...keyless, request })
    expect(await refusal(place, {}, request)).toMatchObject({ charged: 'yes' })
  })

  it.each([
    ['reports the order that has the name now', NAMED, { charged: 'no', idempotencyKey: 'the next one' }],
    ['reports its own order if there is no name', UNNAMED, { charged: 'unknown' }],
  ])('a call without a claim %s', async (_what, request, expected) => {
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

  it('a call without a claim reports unknown for an anonymous order whose record is gone', async () => {
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
  ])('a call without a claim reports unknown if the store cannot %s', async (_what, broken) => {
    const place = placeWith([], {
      credentials: rotating(async () => {
        Object.assign(place.store, broken)
        throw VAULT
      }),
    })
    expect(await refusal(place)).toMatchObject({ code: 'configuration', charged: 'unknown' })
    expect(place.runtime.now() - NOW).toBeLessThanOrEqual(450)
  })
})

describe('a claim that is not stored', () => {
  it('an unstored claim keeps the earlier refusals', async () => {
    const place = await placeLeft(REFUSED)
    inPlaceOfNext(place.store, 'update')
    const error = await errorOf(placed(place))
    expect(error).toMatchObject({ code: 'store', charged: 'no' })
    expect(await storedOf(place)).toMatchObject({ state: 'rejected', rejection: REFUSED.rejection })
  })

  it('an unstored claim waits a moment for the write that closes it', async () => {
    const place = placeWith()
    beforeCall(place.store, 'insert', () => later(place.runtime, 300))
    inPlaceOfNext(place.store, 'insert')
    expect(await refusal(place)).toMatchObject({ code: 'store', charged: 'no' })
  })
})

describe('an order that was refused before', () => {
  it.each([
    [2, 'before this call', -1],
    [2, 'at the moment of this call', 0],
    [1, 'after this call was made', 1],
    [1, 'half a minute after it', 30_000],
    // The first key is not sent, because its age is unknown.
    [1, 'later, by a clock that was wrong', 30_001],
  ])('a refused order is sent with %i keys, if it was refused %s', async (count, _when, ahead) => {
    const place = placeWith([problem(402), CREATED])
    place.runtime.jump(ahead)
    await left(place, REFUSED)
    place.runtime.jump(-ahead)
    await placed(place, NAMED, { settings: { maxRetries: 1 } }).catch(() => {})
    expect(new Set(keysOf(place)).size).toBe(count)
  })
})

describe('the claim of an order', () => {
  it('a claim reads once, even for an anonymous order in doubt', async () => {
    const place = await placeLeft({}, [CREATED], { request: UNNAMED })
    const calls: string[] = []
    beforeCall(place.store, 'get', () => calls.push('get'))
    beforeCall(place.store, 'update', () => calls.push('update'))
    await placed(place, UNNAMED)
    expect(calls.slice(0, 2)).toEqual(['get', 'update'])
  })

  it('a claim requests the API key once, whatever the number of reads', async () => {
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

  it('an overtaken call returns the order if it exists', async () => {
    const { value, info } = await placed(overtaken({ state: 'created', readable: true, order: ORDER }))
    expect(value).toEqual(ORDER)
    expect(info).toMatchObject({ attempts: 0, replayed: true })
  })

  const closed = { state: 'rejected', rejection: { kind: 'refused' } } as const
  it.each<[string, Partial<RecordContent>]>([
    ['yes', { state: 'created', readable: true, order: ORDER, fingerprint: 'of another payload' }],
    ['yes', { state: 'created', order: { id: 'o1' } }],
    ['unknown', {}],
    ['unknown', closed],
    // Only the state shows that an order exists.
    ['unknown', { ...closed, readable: true, order: ORDER }],
  ])('an overtaken call reports charged %s for the stored record: %j', async (charged, changes) => {
    expect(await refusal(overtaken(changes))).toMatchObject({ status: 402, charged })
  })

  it('an overtaken call reports unknown if the record is unreadable, within a second after its time', async () => {
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
  /**
   * Runs the second call while the first waits for its response, which arrives once the second has
   * ended or waits, too.
   */
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

  const madeKey = ({ context }: Place): Given => ({ idempotencyKey: makeKey(context, 'r1', 0).key })
  it.each<[string, Given, (place: Place) => Given]>([
    ['without keys', {}, () => ({})],
    ['with the same key', { idempotencyKey: 'k1' }, () => ({ idempotencyKey: 'k1' })],
    ['with a key in the first only', { idempotencyKey: 'k1' }, () => ({})],
    ['where the second gives the key that the first has made', {}, madeKey],
  ])(
    'two calls of one process place the order once, and the second does not read the store: %s',
    async (_what, first, second) => {
      const { place, reads, one, two } = await beside(first, (made) => placed(made, NAMED, second(made)))
      const { idempotencyKey } = one.info
      expect(two).toMatchObject({ value: ORDER, info: { attempts: 0, replayed: true, idempotencyKey } })
      expect('value' in two && two.value).not.toBe(one.value)
      expect(reads).toBe(1)
      expect(place.requests).toHaveLength(1)
    },
  )
})
