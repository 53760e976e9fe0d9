import { describe, expect, it } from 'vitest'
import { ConfigurationError } from '../../../src/errors.ts'
import { type Hooks, Reporter } from '../../../src/hooks.ts'
import type { CallSettings, Credentials } from '../../../src/http/call.ts'
import { Deadline } from '../../../src/http/deadline.ts'
import type { AttemptRequest, AttemptResult, Transport } from '../../../src/http/transport.ts'
import { type FoundRecord, Journal } from '../../../src/idempotency/journal.ts'
import type { JournalRecord, Rejection } from '../../../src/idempotency/record.ts'
import type { StoredRow } from '../../../src/idempotency/store.ts'
import { type OrderContext, tagOf } from '../../../src/resources/order-context.ts'
import { type SendOptions, type Sent, sendOrder } from '../../../src/resources/send-order.ts'
import { MemoryStore } from '../../../src/stores/memory.ts'
import { LEFT_OPEN, orderContext, recordOf, remember } from '../../support/order-context.ts'
import { type FakeRuntime, fakeRuntime } from '../../support/runtime.ts'

const API_KEY = 'api-key-of-this-shop'
const OTHER_API_KEY = 'api-key-after-rotation'
const MINUTE = 60_000
const WINDOW = 20 * MINUTE
const BUSY = 2 * MINUTE

const ORDER = {
  id: 'o1',
  serviceId: 's',
  target: 't',
  quantity: 1,
  amount: 5,
  currency: 'EUR',
  status: 'pending',
}

const answer = (status: number, body: unknown = {}): AttemptResult => ({
  kind: 'answer',
  status,
  headers: new Headers(),
  text: typeof body === 'string' ? body : JSON.stringify(body),
})
const problem = (status: number, code = 'NO'): AttemptResult => answer(status, { code, message: 'no' })
const CREATED = answer(201, ORDER)
const UNREADABLE = answer(201, '')
const LOST: AttemptResult = { kind: 'failed', unsent: false, closed: false, detail: { name: 'TypeError' } }
const UNREACHABLE: AttemptResult = { ...LOST, unsent: 'unreachable' }
const ABORTED: AttemptResult = { kind: 'aborted' }

/** What the service answers, or does before it answers. */
type Step = AttemptResult | ((place: Place) => AttemptResult | Promise<AttemptResult>)

interface Place {
  readonly context: OrderContext
  readonly runtime: FakeRuntime
  readonly store: MemoryStore
  readonly claimed: FoundRecord
  readonly requests: AttemptRequest[]
}

interface Given {
  readonly record?: Partial<JournalRecord>
  /** Left out of the record. */
  readonly without?: 'busyUntil' | 'firstSentAt'
  readonly hooks?: Hooks
  readonly settings?: Partial<CallSettings>
  readonly options?: Partial<SendOptions>
  readonly context?: Partial<Omit<OrderContext, 'connection'>>
  readonly credentials?: Credentials
  /** Done before it is sent. */
  readonly first?: (place: Place) => void
}

type Sending = Place & {
  readonly sent: Sent
  /** What is stored afterwards. */
  readonly stored: JournalRecord | undefined
  readonly keys: (string | undefined)[]
}

/** Sends a claimed order to a service that answers so, the last answer for ever. */
async function send(steps: readonly Step[], given: Given = {}): Promise<Sending> {
  const runtime = fakeRuntime({ auto: true })
  const store = new MemoryStore()
  const requests: AttemptRequest[] = []
  const transport: Transport = async (request) => {
    const step = steps[Math.min(requests.length, steps.length - 1)]
    requests.push(request)
    if (step === undefined) throw new Error('nothing is to be sent')
    return typeof step === 'function' ? await step(place) : step
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
      reporter: new Reporter(given.hooks ?? {}, undefined, 'off'),
    },
  )
  const now = runtime.now()
  const times = { firstSentAt: now, busyUntil: now + BUSY }
  if (given.without !== undefined) Reflect.deleteProperty(times, given.without)
  const claimed = await remember(context, {
    ...LEFT_OPEN,
    ...times,
    ambiguous: false,
    attempts: 0,
    claim: 'mine',
    apiKeyTag: tagOf(context, given.record?.key ?? LEFT_OPEN.key, API_KEY),
    ...given.record,
  })
  const place: Place = { context, runtime, store, claimed, requests }
  given.first?.(place)
  const settings: CallSettings = {
    signal: undefined,
    timeout: 30_000,
    totalTimeout: BUSY,
    maxRetries: 0,
    headers: {},
    ...given.settings,
  }
  const sent = await sendOrder(context, claimed, {
    settings,
    deadline: new Deadline(runtime, settings.totalTimeout, settings.signal),
    callId: 'call',
    credential: API_KEY,
    unused: true,
    ...given.options,
  })
  const stored = await recordOf(context, 'ref:r1').catch(() => undefined)
  return { ...place, sent, stored, keys: requests.map(({ headers }) => headers['idempotency-key']) }
}

/** Somebody else writes the record. */
async function overtake({ context, claimed }: Place, changes: Partial<JournalRecord> = {}): Promise<void> {
  await remember(context, { ...claimed.record, claim: 'of another', ...changes }, claimed)
}

describe('an order that is sent', () => {
  it('is its body under its key, as the record has it', async () => {
    const { requests, sent, stored } = await send([CREATED], { record: { body: '{"quantity":1}' } })
    expect(requests).toMatchObject([
      {
        method: 'POST',
        url: 'https://api.example.com/v1/orders',
        body: '{"quantity":1}',
        headers: { 'idempotency-key': 'key-r1', authorization: `Bearer ${API_KEY}` },
      },
    ])
    expect(sent).toMatchObject({
      charged: 'yes',
      order: ORDER,
      orderId: 'o1',
      attempts: 1,
      remembered: true,
      overtaken: false,
      ending: { end: 'done' },
      outcome: { kind: 'created' },
    })
    expect(stored).toMatchObject({ state: 'created', readable: true, order: ORDER, attempts: 1 })
    expect(stored).not.toHaveProperty('busyUntil')
  })

  it.each<[boolean, Partial<JournalRecord>, Step[]]>([
    [true, { keyOrigin: 'random' }, [CREATED]],
    [false, { keyOrigin: 'derived' }, [CREATED]],
    [false, { keyOrigin: 'caller' }, [CREATED]],
    [false, { keyOrigin: 'random', ambiguous: true }, [CREATED]],
    [false, { keyOrigin: 'random', attempts: 1 }, [CREATED]],
    [false, { keyOrigin: 'random', state: 'created' }, [CREATED]],
    [false, { keyOrigin: 'random' }, [problem(429), CREATED]],
  ])(
    'is surely this call’s doing (%s) under a fresh key that was sent once: %j',
    async (fresh, record, steps) => {
      const { sent } = await send(steps, { record, settings: { maxRetries: 1 } })
      expect(sent).toMatchObject({ charged: 'yes', fresh })
    },
  )

  it('is closed by a clean refusal, whose code is kept and no more', async () => {
    const { sent, stored } = await send([problem(402, 'NO_MONEY')])
    expect(sent).toMatchObject({
      charged: 'no',
      attempts: 1,
      remembered: true,
      overtaken: false,
      fresh: false,
      ending: { end: 'judged' },
    })
    expect(sent).not.toHaveProperty('order')
    expect(stored).toMatchObject({
      state: 'rejected',
      refused: true,
      attempts: 1,
      rejection: { kind: 'refused', status: 402, code: 'NO_MONEY' },
    })
  })

  it('is understood also where the API key is a word of the answer', async () => {
    const { sent, stored } = await send([problem(409, 'IDEMPOTENCY_CONFLICT')], {
      options: { credential: 'IDEMPOTENCY_CONFLICT' },
    })
    expect(sent.outcome).toMatchObject({ kind: 'conflict' })
    expect(stored).toMatchObject({ rejection: { kind: 'conflict' } })
    expect(stored?.rejection?.code).not.toBe('IDEMPOTENCY_CONFLICT')
  })

  it('stores no API key that the service sends back', async () => {
    const refused = await send([problem(402, `NOT_FOR_${API_KEY}`)])
    expect(JSON.stringify(refused.stored)).not.toContain(API_KEY)
    expect(refused.stored?.rejection?.code).toMatch(/^NOT_FOR_/)
    for (const status of [200, 201, 299]) {
      const created = await send([answer(status, { ...ORDER, note: API_KEY })])
      expect(created.sent.order).toMatchObject({ id: 'o1' })
      expect(JSON.stringify(created.stored)).not.toContain(API_KEY)
      expect(JSON.stringify(created.sent.order)).not.toContain(API_KEY)
    }
  })

  it.each<[string, Step, string]>([
    ['lost', LOST, 'connection_lost'],
    ['timed out', { kind: 'timeout' }, 'timed_out'],
    ['500', answer(500), 'server_error'],
    ['300', answer(300), 'unrecognised'],
    ['409 in progress', problem(409, 'IDEMPOTENCY_IN_PROGRESS'), 'in_progress'],
  ])('stays open and in doubt where nobody knows what became of it: %s', async (_what, step, kind) => {
    const { sent, stored } = await send([step], { options: { once: true } })
    expect(sent).toMatchObject({ charged: 'unknown', remembered: true, outcome: { kind } })
    expect(stored).toMatchObject({ state: 'open', ambiguous: true, attempts: 1 })
    expect(stored).not.toHaveProperty('busyUntil')
  })

  it('is sent again as often as it may be, or once only', async () => {
    const all = await send([answer(503)], { settings: { maxRetries: 3 } })
    expect(all.sent).toMatchObject({ attempts: 4, ending: { end: 'exhausted' } })
    const once = await send([answer(503)], { settings: { maxRetries: 3 }, options: { once: true } })
    expect(once.sent).toMatchObject({ attempts: 1, ending: { end: 'judged' } })
    expect(all.stored).toMatchObject({ attempts: 4 })
  })

  it('is told of under the operation that it is sent for', async () => {
    const operations: string[] = []
    for (const operation of ['orders.recover', undefined]) {
      const { requests } = await send([CREATED], {
        ...(operation === undefined ? {} : { options: { operation } }),
        hooks: { onRequest: (event) => void operations.push(event.operation) },
      })
      expect(requests).toHaveLength(1)
    }
    expect(operations).toEqual(['orders.recover', 'orders.create'])
  })
})

describe('what is told of an order that was not created', () => {
  it('is unknown where the refusal could not be stored', async () => {
    const { sent } = await send([
      ({ store }) => {
        store.update = () => Promise.reject(new Error('gone'))
        return problem(402)
      },
    ])
    expect(sent).toMatchObject({ charged: 'unknown', remembered: false, overtaken: false, fresh: false })
  })

  it('is unknown where somebody else has written the record meanwhile', async () => {
    const { sent, stored } = await send([
      async (place) => {
        await overtake(place)
        return problem(402)
      },
    ])
    expect(sent).toMatchObject({ charged: 'unknown', remembered: false, overtaken: true })
    expect(stored).toMatchObject({ claim: 'of another', state: 'open' })
  })

  it.each<[string, Step, Partial<JournalRecord>, Rejection | undefined]>([
    ['401', answer(401), {}, { kind: 'not_processed', status: 401 }],
    ['unreachable', UNREACHABLE, {}, { kind: 'not_processed' }],
    ['402 in doubt', problem(402), { ambiguous: true }, undefined],
    ['401 in doubt', answer(401), { ambiguous: true }, undefined],
    [
      '409',
      problem(409, 'IDEMPOTENCY_CONFLICT'),
      {},
      { kind: 'conflict', status: 409, code: 'IDEMPOTENCY_CONFLICT' },
    ],
  ])('is what the outcome table says: %s', async (_what, step, record, rejection) => {
    const { sent, stored } = await send([step], { record })
    expect(stored?.state).toBe(rejection === undefined ? 'open' : 'rejected')
    expect(stored?.rejection).toEqual(rejection)
    expect(sent.charged).toBe(rejection === undefined || rejection.kind === 'conflict' ? 'unknown' : 'no')
  })

  it.each<[string, Step, Partial<SendOptions>, string | undefined]>([
    ['a refusal in doubt', problem(402), {}, 'refused'],
    ['an abort', ABORTED, {}, 'aborted'],
    ['an abort of recovery', ABORTED, { once: true }, undefined],
    ['a lost connection', LOST, {}, undefined],
  ])('says what recovery must not repeat: %s', async (_what, step, options, hold) => {
    const { stored } = await send([step], { record: { ambiguous: true }, options })
    expect(stored).toMatchObject({ state: 'open' })
    expect(stored?.hold).toBe(hold)
    // What was held before stays so.
    const before = hold === 'refused' ? 'aborted' : 'refused'
    const held = await send([step], { record: { ambiguous: true, hold: before }, options })
    expect(held.stored?.hold).toBe(hold ?? before)
  })

  it('proves nothing under a key that belongs to a payload of which nothing is known', async () => {
    const { sent, stored } = await send([problem(402)], { record: { foreign: true } })
    expect(sent.charged).toBe('unknown')
    expect(stored).toMatchObject({ state: 'rejected', rejection: { kind: 'conflict', status: 402 } })
    const bought = await send([CREATED], { record: { foreign: true } })
    expect(bought.sent.charged).toBe('yes')
    const open = await send([LOST], { record: { foreign: true } })
    expect(open.stored).toMatchObject({ state: 'open' })
  })
})

describe('an order whose call ends before it sends (again)', () => {
  const failing: Credentials = {
    rotates: true,
    get: () => {
      throw new ConfigurationError('no key')
    },
  }

  it('is closed as never sent where no attempt was made, and as not processed where one was', async () => {
    const never = await send([CREATED], { settings: { signal: AbortSignal.abort() } })
    expect(never.sent).toMatchObject({ charged: 'no', attempts: 0, ending: { end: 'aborted' } })
    expect(never.sent).not.toHaveProperty('outcome')
    expect(never.stored).toMatchObject({ state: 'rejected', rejection: { kind: 'cancelled' } })
    const once = await send([problem(429)], { settings: { maxRetries: 3 }, credentials: failing })
    expect(once.sent).toMatchObject({ charged: 'no', attempts: 1, ending: { end: 'credentials' } })
    expect(once.stored).toMatchObject({
      state: 'rejected',
      rejection: { kind: 'not_processed', status: 429 },
    })
  })

  it('stays open where an attempt before is in doubt', async () => {
    const { sent, stored } = await send([LOST], { settings: { maxRetries: 3 }, credentials: failing })
    expect(sent).toMatchObject({ charged: 'unknown', attempts: 1, ending: { end: 'credentials' } })
    expect(stored).toMatchObject({ state: 'open', ambiguous: true })
    expect(stored).not.toHaveProperty('hold')
  })

  it('stays open, and recovery must not repeat it, where the caller gave up between two attempts', async () => {
    const controller = new AbortController()
    const { sent, stored } = await send(
      [
        ({ runtime }) => {
          runtime.setTimer(() => controller.abort(), 1)
          return answer(503)
        },
      ],
      { settings: { maxRetries: 3, signal: controller.signal } },
    )
    expect(sent).toMatchObject({ charged: 'unknown', attempts: 1, ending: { end: 'aborted' } })
    expect(stored).toMatchObject({ state: 'open', ambiguous: true, hold: 'aborted' })
  })

  it('means what the last attempt meant where it was the last one', async () => {
    const { sent, stored } = await send([problem(429)], { settings: { maxRetries: 1 } })
    expect(sent).toMatchObject({ charged: 'no', attempts: 2, ending: { end: 'exhausted' } })
    expect(stored).toMatchObject({ rejection: { kind: 'not_processed', status: 429 } })
  })
})

describe('the last look before an order is sent', () => {
  it.each<[boolean, string, Given]>([
    [true, 'a moment before its claim ends', { first: ({ runtime }) => runtime.jump(BUSY - 1) }],
    [false, 'when its claim ends', { first: ({ runtime }) => runtime.jump(BUSY) }],
    [false, 'without a claim', { without: 'busyUntil' }],
    [true, 'half a minute back', { first: ({ runtime }) => runtime.jump(-30_000) }],
    [false, 'more than half a minute back', { first: ({ runtime }) => runtime.jump(-30_001) }],
    [
      true,
      'at the end of its window',
      { record: { firstSentAt: 1_700_000_000_000 - WINDOW }, context: { safeRetryWindow: WINDOW } },
    ],
    [false, 'past its window', { record: { firstSentAt: 1_700_000_000_000 - WINDOW - 1 } }],
    [
      true,
      'past its window, where the caller says so',
      {
        record: { firstSentAt: 1_700_000_000_000 - WINDOW - 1 },
        options: { sendUntil: Number.POSITIVE_INFINITY },
      },
    ],
    [true, 'at the end of the time given', { options: { sendUntil: 1_700_000_000_000 } }],
    [false, 'past the time given', { options: { sendUntil: 1_700_000_000_000 - 1 } }],
  ])('lets it go (%s) %s', async (sends, _when, given) => {
    const { sent, requests, stored } = await send([CREATED], given)
    expect(requests).toHaveLength(sends ? 1 : 0)
    expect(sent.charged).toBe(sends ? 'yes' : 'no')
    if (!sends) {
      expect(sent.ending.end).toBe('held')
      expect(stored).toMatchObject({ rejection: { kind: 'cancelled' } })
    }
  })

  it('counts the window of an order that was never sent from now on', async () => {
    const { requests } = await send([CREATED], { without: 'firstSentAt' })
    expect(requests).toHaveLength(1)
  })

  it('is taken before every attempt', async () => {
    const { sent, requests } = await send(
      [
        ({ runtime }) => {
          runtime.jump(BUSY)
          return answer(503)
        },
      ],
      { settings: { maxRetries: 3 } },
    )
    expect(requests).toHaveLength(1)
    expect(sent).toMatchObject({ charged: 'unknown', ending: { end: 'held' } })
  })
})

describe('an API key that is rotated during a call', () => {
  const rotated = (...apiKeys: string[]): Credentials => ({
    rotates: true,
    get: () => apiKeys.shift() ?? OTHER_API_KEY,
  })
  const sentBy = ({ requests }: Sending): (string | undefined)[] =>
    requests.map(({ headers }) => headers['authorization']?.slice('Bearer '.length))
  const twice: Given = { settings: { maxRetries: 1 } }

  it('is stored before it sends, where nothing is in doubt', async () => {
    const tags: (string | undefined)[] = []
    const look = async ({ context }: Place): Promise<void> => {
      tags.push((await recordOf(context, 'ref:r1'))?.apiKeyTag)
    }
    const sending = await send(
      [
        async (place) => {
          await look(place)
          return problem(429)
        },
        async (place) => {
          await look(place)
          return CREATED
        },
      ],
      { ...twice, credentials: rotated() },
    )
    expect(sentBy(sending)).toEqual([API_KEY, OTHER_API_KEY])
    expect(tags).toEqual([
      tagOf(sending.context, 'key-r1', API_KEY),
      tagOf(sending.context, 'key-r1', OTHER_API_KEY),
    ])
    expect(sending.stored).toMatchObject({ state: 'created', apiKeyTag: tags[1] })
  })

  it('is written once for all attempts that it makes, and again when it changes back', async () => {
    const sending = await send([problem(429)], {
      settings: { maxRetries: 3 },
      credentials: rotated(OTHER_API_KEY, OTHER_API_KEY, API_KEY),
    })
    expect(sentBy(sending)).toEqual([API_KEY, OTHER_API_KEY, OTHER_API_KEY, API_KEY])
    // Claimed, rotated, rotated back, closed.
    expect(sending.stored).toMatchObject({ version: 4, state: 'rejected', attempts: 4 })
  })

  it.each<[string, Step, Given]>([
    ['an attempt of this call is in doubt', LOST, {}],
    ['an earlier call is in doubt', problem(429), { record: { ambiguous: true } }],
    ['the order exists and is only to be read', UNREADABLE, {}],
  ])('sends nothing more where %s: the same key may be a new order there', async (_why, step, given) => {
    const options = { ...twice, ...given, credentials: rotated() }
    const sending = await send([step, CREATED], options)
    expect(sentBy(sending)).toEqual([API_KEY])
    expect(sending.sent.ending.end).toBe('held')
    const shared = await send([step, CREATED], {
      ...options,
      credentials: rotated(),
      context: { idempotencyScope: 'customer' },
    })
    expect(sentBy(shared)).toEqual([API_KEY, OTHER_API_KEY])
    expect(shared.sent.charged).toBe('yes')
  })

  it('sends nothing where that cannot be stored', async () => {
    const sending = await send(
      [
        ({ store }) => {
          const update = store.update.bind(store)
          store.update = () => {
            store.update = update
            return Promise.resolve(false)
          }
          return problem(429)
        },
        CREATED,
      ],
      { ...twice, credentials: rotated() },
    )
    expect(sentBy(sending)).toEqual([API_KEY])
    expect(sending.sent.ending.end).toBe('held')
  })

  it('sends nothing where the claim ended while it was stored', async () => {
    const sending = await send(
      [
        ({ store, runtime }) => {
          const update = store.update.bind(store)
          store.update = (row, version) => {
            store.update = update
            runtime.jump(BUSY)
            return update(row, version)
          }
          return problem(429)
        },
        CREATED,
      ],
      { ...twice, credentials: rotated() },
    )
    expect(sentBy(sending)).toEqual([API_KEY])
    expect(sending.sent.ending.end).toBe('held')
  })
})

describe('an order that was refused before', () => {
  const REFUSED: Rejection = { kind: 'refused', status: 402, code: 'NO' }
  const IN_CONFLICT: Rejection = { kind: 'conflict', status: 409, code: 'IDEMPOTENCY_CONFLICT' }
  const CONFLICT = problem(409, 'IDEMPOTENCY_CONFLICT')
  /** Nobody else can have sent the key. */
  const ours = { refused: true, keyOrigin: 'random' } as const

  it.each<[boolean, string, Rejection | undefined, Step, Partial<JournalRecord>]>([
    [true, 'the same refusal', REFUSED, problem(402), {}],
    [false, 'a refusal for the first time', undefined, problem(402), {}],
    [false, 'another status', REFUSED, problem(422), {}],
    [false, 'another code', REFUSED, problem(402, 'OTHER'), {}],
    [
      false,
      'a refusal after an answer that said nothing',
      { ...REFUSED, kind: 'not_processed' },
      problem(402),
      {},
    ],
    [false, 'an answer that says nothing', REFUSED, problem(429), {}],
    [
      false,
      'an answer that says nothing, twice',
      { kind: 'not_processed', status: 429, code: 'NO' },
      problem(429),
      {},
    ],
    [false, 'the same refusal under the caller’s own key', REFUSED, problem(402), { keyOrigin: 'caller' }],
    [false, 'again what once counted as a refusal', { ...REFUSED, status: 429 }, problem(429), {}],
    [false, 'the same refusal in doubt', REFUSED, problem(402), { ambiguous: true }],
    [true, 'a conflict, where every payload was refused', REFUSED, CONFLICT, ours],
    [true, 'a conflict again, where every payload was refused', IN_CONFLICT, CONFLICT, ours],
    [
      false,
      'a conflict, where another process may have sent the same key',
      REFUSED,
      CONFLICT,
      { refused: true },
    ],
    [false, 'a conflict, where another payload may have been bought', REFUSED, CONFLICT, {}],
    [false, 'a conflict, heard for the first time', undefined, CONFLICT, { refused: true }],
    [
      false,
      'a conflict after an answer that said nothing',
      { kind: 'not_processed' },
      CONFLICT,
      { refused: true },
    ],
    [false, 'a conflict after it was given up', { kind: 'abandoned' }, CONFLICT, { refused: true }],
  ])('moves to its next key (%s) when it hears %s', async (moves, _what, earlier, step, record) => {
    const { keys, sent, stored } = await send([step, CREATED], {
      record,
      settings: { maxRetries: 1 },
      options: { once: true, earlier },
    })
    expect(new Set(keys).size).toBe(moves ? 2 : 1)
    expect(stored?.generation).toBe(moves ? 1 : 0)
    expect(sent.charged === 'yes').toBe(moves)
  })

  it('is sent under the next key as an order of its own, by whoever the API key belongs to by then', async () => {
    const claims: (JournalRecord | undefined)[] = []
    const asked: string[] = []
    const { context, keys, requests, sent, stored, claimed } = await send(
      [
        problem(402),
        async (place) => {
          claims.push(await recordOf(place.context, 'ref:r1'))
          return CREATED
        },
      ],
      {
        settings: { maxRetries: 1 },
        options: { earlier: REFUSED },
        record: { rejection: REFUSED, hold: 'refused', attempts: 3 },
        credentials: {
          rotates: true,
          get: () => {
            asked.push('again')
            return OTHER_API_KEY
          },
        },
      },
    )
    expect(asked).toEqual(['again'])
    expect(requests[1]?.headers['authorization']).toBe(`Bearer ${OTHER_API_KEY}`)
    expect(keys[0]).toBe('key-r1')
    expect(keys[1]).not.toBe('key-r1')
    expect(claims).toMatchObject([
      {
        key: keys[1],
        generation: 1,
        state: 'open',
        ambiguous: false,
        attempts: 4,
        busyUntil: claimed.record.busyUntil,
        apiKeyTag: tagOf(context, keys[1] ?? '', OTHER_API_KEY),
      },
    ])
    expect(claims[0]).not.toHaveProperty('rejection')
    expect(sent).toMatchObject({ charged: 'yes', attempts: 2, remembered: true })
    expect(stored).toMatchObject({ state: 'created', key: keys[1], attempts: 5 })
  })

  it('is claimed under the next key for the API key that was sent last', async () => {
    const tags: (string | undefined)[] = []
    const { context, keys, stored } = await send(
      [
        problem(402),
        async (place) => {
          tags.push((await recordOf(place.context, 'ref:r1'))?.apiKeyTag)
          return CREATED
        },
      ],
      { settings: { maxRetries: 1 }, options: { earlier: REFUSED } },
    )
    expect(tags).toEqual([tagOf(context, keys[1] ?? '', API_KEY)])
    // Claimed, claimed under the next key, created: nothing had to be corrected in between.
    expect(stored).toMatchObject({ version: 3 })
    const proxied = await send([problem(402), CREATED], {
      settings: { maxRetries: 1 },
      options: { earlier: REFUSED, credential: null },
      credentials: { rotates: false, get: () => null },
    })
    expect(proxied.stored?.apiKeyTag).toBe(tagOf(context, proxied.keys[1] ?? '', null))
  })

  it('moves on once, and uses up a retry for it', async () => {
    const again = await send([problem(402)], { settings: { maxRetries: 5 }, options: { earlier: REFUSED } })
    expect(again.keys).toHaveLength(2)
    expect(again.sent).toMatchObject({ charged: 'no', attempts: 2 })
    expect(again.stored).toMatchObject({ generation: 1, state: 'rejected', rejection: REFUSED })

    const retried = await send([problem(429), problem(402), problem(429)], {
      settings: { maxRetries: 3 },
      options: { earlier: REFUSED },
    })
    // One retry for the first 429, one for the new key, one for the second 429.
    expect(retried.keys).toHaveLength(4)
    expect(new Set(retried.keys).size).toBe(2)
    expect(retried.sent.attempts).toBe(4)
  })

  it.each<[string, Given]>([
    ['retry', { settings: { maxRetries: 0 } }],
    ['time', { settings: { maxRetries: 1 } }],
  ])('stays refused under its key where no %s is left for another', async (what, given) => {
    const { keys, sent, stored } = await send(
      [
        async ({ runtime }) => {
          // The answer comes as the call's time is over, and before its attempt's.
          if (what === 'time') await new Promise<void>((resolve) => void runtime.setTimer(resolve, BUSY))
          return problem(402)
        },
      ],
      { options: { earlier: REFUSED }, ...given },
    )
    expect(keys).toHaveLength(1)
    expect(sent).toMatchObject({ charged: 'no', remembered: true, attempts: 1 })
    expect(stored).toMatchObject({
      state: 'rejected',
      key: 'key-r1',
      generation: 0,
      attempts: 1,
      refused: true,
      rejection: { kind: 'refused', status: 402, code: 'NO' },
    })
  })

  it('is told as not bought where no retry is left after a conflict that its own refused payloads explain', async () => {
    const { sent, stored } = await send([CONFLICT], { options: { earlier: REFUSED }, record: ours })
    expect(sent).toMatchObject({ charged: 'no', remembered: true })
    expect(stored).toMatchObject({
      state: 'rejected',
      foreign: false,
      rejection: { kind: 'refused', status: 409, code: 'IDEMPOTENCY_CONFLICT' },
    })
  })

  it('is in doubt where that next key cannot be stored', async () => {
    const { sent } = await send(
      [
        async (place) => {
          await overtake(place)
          return problem(402)
        },
      ],
      { options: { earlier: REFUSED } },
    )
    expect(sent).toMatchObject({ charged: 'unknown', remembered: false, overtaken: true })
  })

  it('leaves the next key to whoever has written the record meanwhile', async () => {
    const { keys, sent, stored } = await send(
      [
        async (place) => {
          await overtake(place)
          return problem(402)
        },
      ],
      { options: { earlier: REFUSED }, settings: { maxRetries: 2 } },
    )
    expect(keys).toHaveLength(1)
    expect(sent).toMatchObject({ charged: 'unknown', remembered: false, overtaken: true })
    expect(stored).toMatchObject({ claim: 'of another' })
  })

  it('is closed under its key where the store does not confirm the next one', async () => {
    const { keys, sent, stored } = await send(
      [
        ({ store }) => {
          const update = store.update.bind(store)
          store.update = (_row: StoredRow) => {
            store.update = update
            return Promise.reject(new Error('gone'))
          }
          return problem(402)
        },
      ],
      { options: { earlier: REFUSED }, settings: { maxRetries: 2 } },
    )
    expect(keys).toHaveLength(1)
    expect(sent).toMatchObject({ charged: 'no', remembered: true })
    expect(stored).toMatchObject({ key: 'key-r1', state: 'rejected', rejection: REFUSED })
  })
})

describe('an order that exists', () => {
  it('is told by its id where no more of it is readable', async () => {
    const { sent, stored } = await send([answer(201, { ...ORDER, amount: 1.5 })])
    expect(sent).toMatchObject({ charged: 'yes', orderId: 'o1', remembered: true, overtaken: false })
    expect(sent).not.toHaveProperty('order')
    expect(stored).toMatchObject({ state: 'created', readable: false, order: { id: 'o1' }, body: '{}' })
  })

  it('is told by the id that is remembered where nothing is readable', async () => {
    const known = await send([UNREADABLE], { record: { state: 'created', order: { id: 'o7' } } })
    expect(known.sent).toMatchObject({ charged: 'yes', orderId: 'o7' })
    const unknown = await send([UNREADABLE])
    expect(unknown.sent).toMatchObject({ charged: 'yes' })
    expect(unknown.sent).not.toHaveProperty('orderId')
    // Asked for again twice, as a replay.
    expect(unknown.requests).toHaveLength(3)
  })

  it('is charged also where the call ends before it asks for it again', async () => {
    const { sent, requests } = await send([CREATED], {
      record: { state: 'created', order: { id: 'o7' } },
      settings: { signal: AbortSignal.abort() },
    })
    expect(sent).toMatchObject({ charged: 'yes', orderId: 'o7', attempts: 0 })
    expect(sent).not.toHaveProperty('order')
    expect(requests).toEqual([])
  })

  it('is charged whatever comes after the answer that proved it', async () => {
    const { sent, stored } = await send([UNREADABLE, problem(402)])
    expect(sent).toMatchObject({ charged: 'yes', ending: { end: 'judged' } })
    expect(stored).toMatchObject({ state: 'created' })
    const settled = await send([problem(402)], { record: { state: 'created' } })
    expect(settled.sent.charged).toBe('yes')
  })

  it('is told also where it cannot be stored now', async () => {
    const { sent } = await send([
      ({ store }) => {
        store.update = () => Promise.reject(new Error('gone'))
        return CREATED
      },
    ])
    expect(sent).toMatchObject({ charged: 'yes', order: ORDER, remembered: false, overtaken: false })
  })
})

describe('an order that waited to be sent', () => {
  const queued = (earlier?: Rejection): Given => ({ options: { queued: true, once: true, earlier } })

  it.each<[string, Step]>([
    ['401', answer(401)],
    ['403', problem(403)],
    ['429', problem(429)],
    ['unreachable', UNREACHABLE],
  ])('goes on waiting where the service has not looked at it: %s', async (_what, step) => {
    const { sent, stored } = await send([step], queued())
    expect(sent).toMatchObject({ charged: 'unknown', remembered: true })
    expect(stored).toMatchObject({ state: 'open', ambiguous: false, apiKeyTag: '', attempts: 1 })
    expect(stored).not.toHaveProperty('firstSentAt')
    expect(stored).not.toHaveProperty('rejection')
  })

  it('keeps what was heard before', async () => {
    const { stored } = await send([problem(429)], queued({ kind: 'refused', status: 402 }))
    expect(stored).toMatchObject({ state: 'open', rejection: { kind: 'refused', status: 402 } })
  })

  it.each<[string, Step]>([
    ['402', problem(402)],
    ['413', problem(413)],
    ['conflict', problem(409, 'IDEMPOTENCY_CONFLICT')],
  ])('ends where the service has refused it: %s', async (_what, step) => {
    const { stored } = await send([step], queued())
    expect(stored).toMatchObject({ state: 'rejected' })
  })

  it('is as any other where it is in doubt', async () => {
    const { sent, stored } = await send([LOST], queued())
    expect(sent.charged).toBe('unknown')
    expect(stored).toMatchObject({ state: 'open', ambiguous: true, firstSentAt: expect.any(Number) })
    const doubted = await send([problem(429)], { ...queued(), record: { ambiguous: true } })
    expect(doubted.stored).toMatchObject({ state: 'open', ambiguous: true, firstSentAt: expect.any(Number) })
  })
})
