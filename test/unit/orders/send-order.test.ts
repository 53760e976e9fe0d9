import { describe, expect, it } from 'vitest'
import { ConfigurationError } from '../../../src/errors.ts'
import type { AttemptResult } from '../../../src/http/attempt.ts'
import type { CallSettings, Credentials } from '../../../src/http/call.ts'
import { Deadline } from '../../../src/http/deadline.ts'
import { tagOf } from '../../../src/orders/claim.ts'
import type { FoundRecord } from '../../../src/orders/journal.ts'
import type { JournalRecord, Rejection } from '../../../src/orders/record.ts'
import { type SendOptions, type Sent, sendOrder } from '../../../src/orders/send-order.ts'
import { LEFT_OPEN, recordOf, remember, storedRecords } from '../../support/order-context.ts'
import {
  ABORTED,
  API_KEY,
  answer,
  CREATED,
  callSettings,
  fails,
  inPlaceOfNext,
  LOST,
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
  TIMED_OUT,
  UNREACHABLE,
  UNREADABLE,
  WINDOW,
} from '../../support/place.ts'

const OTHER_API_KEY = 'api-key-after-rotation'
const BUSY = 2 * MINUTE
const CONFLICT = problem(409, 'IDEMPOTENCY_CONFLICT')

interface Given extends PlaceOptions {
  readonly record?: Partial<JournalRecord>
  /** Left out of the record. */
  readonly without?: 'busyUntil' | 'firstSentAt'
  readonly settings?: Partial<CallSettings>
  readonly options?: Partial<SendOptions>
  /** Done before it is sent. */
  readonly first?: (place: Place) => void
}

type Sending = Place & {
  readonly sent: Sent
  readonly claimed: FoundRecord
  /** What is stored afterwards. */
  readonly stored: JournalRecord | undefined
  readonly keys: (string | undefined)[]
}

/** Sends a claimed order to a service that responds so, the last response for ever. */
async function send(steps: readonly Step[], given: Given = {}): Promise<Sending> {
  const place = placeWith(steps, given)
  const { context, runtime, requests } = place
  const times = { firstSentAt: NOW, busyUntil: NOW + BUSY }
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
  given.first?.(place)
  const settings = callSettings(given.settings)
  const sent = await sendOrder(context, claimed, {
    settings,
    deadline: new Deadline(runtime, settings.totalTimeout, settings.signal),
    callId: 'call',
    credential: API_KEY,
    earlier: undefined,
    operation: 'orders.create',
    once: false,
    queued: false,
    unused: true,
    sendUntil: undefined,
    ...given.options,
  })
  const stored = await storedOf(place).catch(() => undefined)
  return { ...place, claimed, sent, stored, keys: requests.map(({ headers }) => headers['idempotency-key']) }
}

const storedOf = ({ context }: Place) => recordOf(context, 'ref:r1')
const lacks = (of: object | undefined, ...fields: string[]): void => {
  for (const field of fields) expect(of).not.toHaveProperty(field)
}

/** Somebody else writes the record before the response comes. */
const overtaken: Step = async ({ context }) => {
  for (const found of await storedRecords(context))
    await remember(context, { ...found.record, claim: 'of another' }, found)
  return problem(402)
}
/** The store fails from then on. */
const unstored =
  (step: AttemptResult): Step =>
  ({ store }) => {
    store.update = fails
    return step
  }

describe('an order that is sent', () => {
  it('is its body under its key, as the record has it', async () => {
    const { requests, sent, stored } = await send([CREATED], { record: { body: '{"quantity":1}' } })
    const headers = { 'idempotency-key': 'key-r1', authorization: `Bearer ${API_KEY}` }
    const request = { method: 'POST', url: 'https://api.example.com/v1/orders', body: '{"quantity":1}' }
    expect(requests).toMatchObject([{ ...request, headers }])
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
    lacks(stored, 'busyUntil')
  })

  it.each<[boolean, Partial<JournalRecord>, Step[]]>([
    [true, { keyOrigin: 'random' }, [CREATED]],
    [false, { keyOrigin: 'derived' }, [CREATED]],
    [false, { keyOrigin: 'caller' }, [CREATED]],
    [false, { keyOrigin: 'random', ambiguous: true }, [CREATED]],
    [false, { keyOrigin: 'random', attempts: 1 }, [CREATED]],
    [false, { keyOrigin: 'random', state: 'created' }, [CREATED]],
    [false, { keyOrigin: 'random' }, [problem(429), CREATED]],
  ])('is surely this call’s doing (%s) under a fresh key sent once: %j', async (fresh, record, steps) => {
    const { sent } = await send(steps, { record, settings: { maxRetries: 1 } })
    expect(sent).toMatchObject({ charged: 'yes', fresh })
  })

  it('is closed by a clean refusal, whose code is kept and no more', async () => {
    const { sent, stored } = await send([problem(402, 'NO_MONEY')])
    const facts = { attempts: 1, remembered: true, overtaken: false, fresh: false }
    expect(sent).toMatchObject({ charged: 'no', ending: { end: 'judged' }, ...facts })
    expect(sent.order).toBeUndefined()
    const rejection = { kind: 'refused', status: 402, code: 'NO_MONEY' }
    expect(stored).toMatchObject({ state: 'rejected', refused: true, attempts: 1, rejection })
  })

  it('is understood also where the API key is a word of the answer', async () => {
    const { sent, stored } = await send([CONFLICT], { options: { credential: 'IDEMPOTENCY_CONFLICT' } })
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
      expect(JSON.stringify([created.stored, created.sent.order])).not.toContain(API_KEY)
    }
  })

  it.each<[string, Step, string]>([
    ['lost', LOST, 'connection_lost'],
    ['timed out', TIMED_OUT, 'timed_out'],
    ['500', answer(500), 'server_error'],
    ['300', answer(300), 'unrecognised'],
    ['409 in progress', problem(409, 'IDEMPOTENCY_IN_PROGRESS'), 'in_progress'],
  ])('stays open and in doubt where nobody knows what became of it: %s', async (_what, step, kind) => {
    const { sent, stored } = await send([step], { options: { once: true } })
    expect(sent).toMatchObject({ charged: 'unknown', remembered: true, outcome: { kind } })
    expect(stored).toMatchObject({ state: 'open', ambiguous: true, attempts: 1 })
    lacks(stored, 'busyUntil')
  })

  it('is sent again as often as it may be, or once only', async () => {
    const all = await send([answer(503)], { settings: { maxRetries: 3 } })
    expect(all.sent).toMatchObject({ attempts: 4, ending: { end: 'exhausted' } })
    const once = await send([answer(503)], { settings: { maxRetries: 3 }, options: { once: true } })
    expect(once.sent).toMatchObject({ attempts: 1, ending: { end: 'judged' } })
    expect(all.stored).toMatchObject({ attempts: 4 })
  })

  it.each([
    ['orders.recover', { operation: 'orders.recover' }],
    ['orders.create', {}],
  ])('is told of under the operation that it is sent for: %s', async (operation, options) => {
    const operations: string[] = []
    await send([CREATED], { options, hooks: { onRequest: (event) => void operations.push(event.operation) } })
    expect(operations).toEqual([operation])
  })
})

describe('what is told of an order that was not created', () => {
  const REFUSED: Rejection = { kind: 'refused', status: 402, code: 'NO' }

  it.each<[string, Step, Given, object]>([
    ['the refusal could not be stored', unstored(problem(402)), {}, { overtaken: false, fresh: false }],
    ['somebody else has written the record', overtaken, {}, { overtaken: true }],
    [
      'somebody else has, and the next key cannot be stored',
      overtaken,
      { options: { earlier: REFUSED }, settings: { maxRetries: 2 } },
      { overtaken: true },
    ],
    [
      'somebody else has, and no retry is left for the next key',
      overtaken,
      { options: { earlier: REFUSED } },
      { overtaken: true },
    ],
  ])('is unknown where %s', async (_what, step, given, facts) => {
    const { sent, stored, keys } = await send([step], given)
    expect(sent).toMatchObject({ charged: 'unknown', remembered: false, ...facts })
    expect(keys).toHaveLength(1)
    expect(stored).toMatchObject({ state: 'open', claim: step === overtaken ? 'of another' : 'mine' })
  })

  const inConflict = { kind: 'conflict', status: 409, code: 'IDEMPOTENCY_CONFLICT' } as const
  it.each<[string, Step, Partial<JournalRecord>, Rejection | undefined]>([
    ['401', answer(401), {}, { kind: 'not_processed', status: 401 }],
    ['unreachable', UNREACHABLE, {}, { kind: 'not_processed' }],
    ['402 in doubt', problem(402), { ambiguous: true }, undefined],
    ['401 in doubt', answer(401), { ambiguous: true }, undefined],
    ['409', CONFLICT, {}, inConflict],
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
    const heldBefore = hold === 'refused' ? 'aborted' : 'refused'
    const held = await send([step], { record: { ambiguous: true, hold: heldBefore }, options })
    expect(held.stored?.hold).toBe(hold ?? heldBefore)
  })

  it('proves nothing under a key that belongs to a payload of which nothing is known', async () => {
    const record = { foreign: true }
    const { sent, stored } = await send([problem(402)], { record })
    expect(sent.charged).toBe('unknown')
    expect(stored).toMatchObject({ state: 'rejected', rejection: { kind: 'conflict', status: 402 } })
    expect((await send([CREATED], { record })).sent.charged).toBe('yes')
    expect((await send([LOST], { record })).stored).toMatchObject({ state: 'open' })
  })
})

describe('an order whose call ends before it sends (again)', () => {
  const failing = rotating(() => {
    throw new ConfigurationError('no key')
  })
  const settings = { maxRetries: 3 }

  it('is closed as never sent where no attempt was made, and as not processed where one was', async () => {
    const never = await send([CREATED], { settings: { signal: AbortSignal.abort() } })
    expect(never.sent).toMatchObject({ charged: 'no', attempts: 0, ending: { end: 'aborted' } })
    expect(never.sent.outcome).toBeUndefined()
    expect(never.stored).toMatchObject({ state: 'rejected', rejection: { kind: 'cancelled' } })
    const once = await send([problem(429)], { settings, credentials: failing })
    expect(once.sent).toMatchObject({ charged: 'no', attempts: 1, ending: { end: 'credentials' } })
    const rejection = { kind: 'not_processed', status: 429 }
    expect(once.stored).toMatchObject({ state: 'rejected', rejection })
  })

  it('stays open where an attempt before is in doubt', async () => {
    const { sent, stored } = await send([LOST], { settings, credentials: failing })
    expect(sent).toMatchObject({ charged: 'unknown', attempts: 1, ending: { end: 'credentials' } })
    expect(stored).toMatchObject({ state: 'open', ambiguous: true })
    lacks(stored, 'hold')
  })

  it('stays open, and recovery must not repeat it, where the caller gave up between two attempts', async () => {
    const controller = new AbortController()
    const aborting: Step = ({ runtime }) => {
      runtime.setTimer(() => controller.abort(), 1)
      return answer(503)
    }
    const { sent, stored } = await send([aborting], { settings: { ...settings, signal: controller.signal } })
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
  const jump = (by: number): Given => ({ first: ({ runtime }) => runtime.jump(by) })
  const past = { record: { firstSentAt: NOW - WINDOW - 1 } }
  const until = (sendUntil: number) => ({ options: { sendUntil } })

  it.each<[boolean, string, Given]>([
    [true, 'a moment before its claim ends', jump(BUSY - 1)],
    [false, 'when its claim ends', jump(BUSY)],
    [false, 'without a claim', { without: 'busyUntil' }],
    [true, 'half a minute back', jump(-30_000)],
    [false, 'more than half a minute back', jump(-30_001)],
    [true, 'at the end of its window', { record: { firstSentAt: NOW - WINDOW } }],
    [false, 'past its window', past],
    [true, 'past its window, where the caller says so', { ...past, ...until(Number.POSITIVE_INFINITY) }],
    [true, 'at the end of the time given', until(NOW)],
    [false, 'past the time given', until(NOW - 1)],
    [true, 'never sent before, so that its window begins now', { without: 'firstSentAt' }],
  ])('lets it go (%s) %s', async (sends, _when, given) => {
    const { sent, requests, stored } = await send([CREATED], given)
    expect(requests).toHaveLength(sends ? 1 : 0)
    expect(sent).toMatchObject({ charged: sends ? 'yes' : 'no', ending: { end: sends ? 'done' : 'held' } })
    if (!sends) expect(stored).toMatchObject({ rejection: { kind: 'cancelled' } })
  })

  it('is taken before every attempt', async () => {
    const slow: Step = ({ runtime }) => {
      runtime.jump(BUSY)
      return answer(503)
    }
    const { sent, requests } = await send([slow], { settings: { maxRetries: 3 } })
    expect(requests).toHaveLength(1)
    expect(sent).toMatchObject({ charged: 'unknown', ending: { end: 'held' } })
  })
})

describe('an API key that is rotated during a call', () => {
  const rotated = (...apiKeys: string[]): Credentials => rotating(() => apiKeys.shift() ?? OTHER_API_KEY)
  const sentBy = ({ requests }: Sending): (string | undefined)[] =>
    requests.map(({ headers }) => headers['authorization']?.slice('Bearer '.length))
  const twice: Given = { settings: { maxRetries: 1 } }

  it('is stored before it sends, where nothing is in doubt', async () => {
    const tags: (string | undefined)[] = []
    const noted =
      (step: AttemptResult): Step =>
      async (place) => {
        tags.push((await storedOf(place))?.apiKeyTag)
        return step
      }
    const sending = await send([noted(problem(429)), noted(CREATED)], { ...twice, credentials: rotated() })
    const apiKeys = [API_KEY, OTHER_API_KEY]
    expect(sentBy(sending)).toEqual(apiKeys)
    expect(tags).toEqual(apiKeys.map((apiKey) => tagOf(sending.context, 'key-r1', apiKey)))
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
    const context = { idempotencyScope: 'customer' } as const
    const shared = await send([step, CREATED], { ...options, credentials: rotated(), context })
    expect(sentBy(shared)).toEqual([API_KEY, OTHER_API_KEY])
    expect(shared.sent.charged).toBe('yes')
  })

  it.each<[string, Step]>([
    [
      'that cannot be stored',
      ({ store }) => {
        inPlaceOfNext(store, 'update', () => Promise.resolve(false))
        return problem(429)
      },
    ],
    [
      'the claim ended while it was stored',
      ({ store, runtime }) => {
        const update = store.update.bind(store)
        store.update = (row, version) => {
          store.update = update
          runtime.jump(BUSY)
          return update(row, version)
        }
        return problem(429)
      },
    ],
  ])('sends nothing where %s', async (_what, step) => {
    const sending = await send([step, CREATED], { ...twice, credentials: rotated() })
    expect(sentBy(sending)).toEqual([API_KEY])
    expect(sending.sent.ending.end).toBe('held')
  })
})

describe('an order that was refused before', () => {
  const REFUSED: Rejection = { kind: 'refused', status: 402, code: 'NO' }
  const IN_CONFLICT: Rejection = { kind: 'conflict', status: 409, code: 'IDEMPOTENCY_CONFLICT' }
  const earlier = { options: { earlier: REFUSED } }
  const limited: Rejection = { kind: 'not_processed', status: 429, code: 'NO' }
  const unlooked: Rejection = { ...REFUSED, kind: 'not_processed' }
  /** Nobody else can have sent the key. */
  const ours = { refused: true, keyOrigin: 'random' } as const
  const refused = { refused: true }
  const [NO, BUSY_NOW] = [problem(402), problem(429)]

  it.each<[boolean, string, Rejection | undefined, Step, Partial<JournalRecord>]>([
    [true, 'the same refusal', REFUSED, NO, {}],
    [false, 'a refusal for the first time', undefined, NO, {}],
    [false, 'another status', REFUSED, problem(422), {}],
    [false, 'another code', REFUSED, problem(402, 'OTHER'), {}],
    [false, 'a refusal after an answer that said nothing', unlooked, NO, {}],
    [false, 'an answer that says nothing', REFUSED, BUSY_NOW, {}],
    [false, 'an answer that says nothing, twice', limited, BUSY_NOW, {}],
    [false, 'the same refusal under the caller’s own key', REFUSED, NO, { keyOrigin: 'caller' }],
    [false, 'again what once counted as a refusal', { ...REFUSED, status: 429 }, BUSY_NOW, {}],
    [false, 'the same refusal in doubt', REFUSED, NO, { ambiguous: true }],
    [true, 'a conflict, where every payload was refused', REFUSED, CONFLICT, ours],
    [true, 'a conflict again, where every payload was refused', IN_CONFLICT, CONFLICT, ours],
    [false, 'a conflict, where another process may have sent the same key', REFUSED, CONFLICT, refused],
    [false, 'a conflict, where another payload may have been bought', REFUSED, CONFLICT, {}],
    [false, 'a conflict, heard for the first time', undefined, CONFLICT, refused],
    [false, 'a conflict after an answer that said nothing', { kind: 'not_processed' }, CONFLICT, refused],
    [false, 'a conflict after it was given up', { kind: 'abandoned' }, CONFLICT, refused],
  ])('moves to its next key (%s) when it hears %s', async (moves, _what, heard, step, record) => {
    const { keys, sent, stored } = await send([step, CREATED], {
      record,
      settings: { maxRetries: 1 },
      options: { once: true, earlier: heard },
    })
    expect(new Set(keys).size).toBe(moves ? 2 : 1)
    expect(stored?.generation).toBe(moves ? 1 : 0)
    expect(sent.charged === 'yes').toBe(moves)
  })

  /** Notes the claim under the next key. */
  const claimNoted = (): { claims: (JournalRecord | undefined)[]; steps: Step[] } => {
    const claims: (JournalRecord | undefined)[] = []
    const noted: Step = async (place) => {
      claims.push(await storedOf(place))
      return CREATED
    }
    return { claims, steps: [NO, noted] }
  }

  it('is sent under the next key as an order of its own, by whoever the API key belongs to by then', async () => {
    const { claims, steps } = claimNoted()
    let asked = 0
    const { context, keys, requests, sent, stored, claimed } = await send(steps, {
      ...earlier,
      settings: { maxRetries: 1 },
      record: { rejection: REFUSED, hold: 'refused', attempts: 3 },
      credentials: rotating(() => {
        asked++
        return OTHER_API_KEY
      }),
    })
    expect(asked).toBe(1)
    expect(requests[1]?.headers['authorization']).toBe(`Bearer ${OTHER_API_KEY}`)
    const [first, key = ''] = keys
    expect(first).toBe('key-r1')
    expect(key).not.toBe('key-r1')
    const { busyUntil } = claimed.record
    const apiKeyTag = tagOf(context, key, OTHER_API_KEY)
    const claim = { key, generation: 1, state: 'open', ambiguous: false, attempts: 4, busyUntil, apiKeyTag }
    expect(claims).toMatchObject([claim])
    lacks(claims[0], 'rejection')
    expect(sent).toMatchObject({ charged: 'yes', attempts: 2, remembered: true })
    expect(stored).toMatchObject({ state: 'created', key, attempts: 5 })
  })

  it('is claimed under the next key for the API key that was sent last', async () => {
    const { claims, steps } = claimNoted()
    const settings = { maxRetries: 1 }
    const { context, keys, stored } = await send(steps, { ...earlier, settings })
    expect(claims).toMatchObject([{ apiKeyTag: tagOf(context, keys[1] ?? '', API_KEY) }])
    // Claimed, claimed under the next key, created: nothing had to be corrected in between.
    expect(stored).toMatchObject({ version: 3 })
    const proxied = await send([NO, CREATED], {
      settings,
      options: { earlier: REFUSED, credential: null },
      credentials: { rotates: false, get: () => null },
    })
    expect(proxied.stored?.apiKeyTag).toBe(tagOf(context, proxied.keys[1] ?? '', null))
  })

  it('moves on once, and uses up a retry for it', async () => {
    const again = await send([NO], { ...earlier, settings: { maxRetries: 5 } })
    expect(again.keys).toHaveLength(2)
    expect(again.sent).toMatchObject({ charged: 'no', attempts: 2 })
    expect(again.stored).toMatchObject({ generation: 1, state: 'rejected', rejection: REFUSED })

    const retried = await send([BUSY_NOW, NO, BUSY_NOW], { ...earlier, settings: { maxRetries: 3 } })
    // One retry for the first 429, one for the new key, one for the second 429.
    expect(retried.keys).toHaveLength(4)
    expect(new Set(retried.keys).size).toBe(2)
    expect(retried.sent.attempts).toBe(4)
  })

  /** The response comes as the call's time is over, and before its attempt's. */
  const late: Step = async ({ runtime }) => {
    await later(runtime, BUSY)
    return NO
  }
  const unconfirmed: Step = ({ store }) => {
    inPlaceOfNext(store, 'update')
    return NO
  }
  const stays = { refused: true, rejection: REFUSED }
  const conflict = { refused: true, foreign: false, rejection: { ...IN_CONFLICT, kind: 'refused' } }
  it.each<[string, Step, Given, object]>([
    ['no retry is left for another', NO, { settings: { maxRetries: 0 } }, stays],
    ['no time is left for another', late, { settings: { maxRetries: 1 } }, stays],
    ['the store does not confirm the next one', unconfirmed, { settings: { maxRetries: 2 } }, stays],
    [
      'no retry is left after a conflict that its own refused payloads explain',
      CONFLICT,
      { record: ours },
      conflict,
    ],
  ])('stays refused under its key, and not bought, where %s', async (_what, step, given, expected) => {
    const { keys, sent, stored } = await send([step], { ...earlier, ...given })
    expect(keys).toHaveLength(1)
    expect(sent).toMatchObject({ charged: 'no', remembered: true, attempts: 1 })
    const same = { state: 'rejected', key: 'key-r1', generation: 0, attempts: 1 }
    expect(stored).toMatchObject({ ...same, ...expected })
  })
})

describe('an order that exists', () => {
  it('is told by its id where no more of it is readable', async () => {
    const { sent, stored } = await send([answer(201, { ...ORDER, amount: 1.5 })])
    expect(sent).toMatchObject({ charged: 'yes', orderId: 'o1', remembered: true, overtaken: false })
    expect(sent.order).toBeUndefined()
    expect(stored).toMatchObject({ state: 'created', readable: false, order: { id: 'o1' }, body: '{}' })
  })

  it('is told by the id that is remembered where nothing is readable', async () => {
    const known = await send([UNREADABLE], { record: { state: 'created', order: { id: 'o7' } } })
    expect(known.sent).toMatchObject({ charged: 'yes', orderId: 'o7' })
    const unknown = await send([UNREADABLE])
    expect(unknown.sent).toMatchObject({ charged: 'yes' })
    expect(unknown.sent.orderId).toBeUndefined()
    // Asked for again twice, as a replay.
    expect(unknown.requests).toHaveLength(3)
  })

  it('is charged also where the call ends before it asks for it again', async () => {
    const record = { state: 'created', order: { id: 'o7' } } as const
    const { sent, requests } = await send([CREATED], { record, settings: { signal: AbortSignal.abort() } })
    expect(sent).toMatchObject({ charged: 'yes', orderId: 'o7', attempts: 0 })
    expect(sent.order).toBeUndefined()
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
    const { sent } = await send([unstored(CREATED)])
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
    lacks(stored, 'firstSentAt', 'rejection')
  })

  it('keeps what was heard before', async () => {
    const rejection = { kind: 'refused', status: 402 } as const
    expect((await send([problem(429)], queued(rejection))).stored).toMatchObject({ state: 'open', rejection })
  })

  it.each<[string, Step]>([
    ['402', problem(402)],
    ['413', problem(413)],
    ['conflict', CONFLICT],
  ])('ends where the service has refused it: %s', async (_what, step) => {
    expect((await send([step], queued())).stored).toMatchObject({ state: 'rejected' })
  })

  it('is as any other where it is in doubt', async () => {
    const doubted = { state: 'open', ambiguous: true, firstSentAt: expect.any(Number) }
    const { sent, stored } = await send([LOST], queued())
    expect(sent.charged).toBe('unknown')
    expect(stored).toMatchObject(doubted)
    const before = await send([problem(429)], { ...queued(), record: { ambiguous: true } })
    expect(before.stored).toMatchObject(doubted)
  })
})
