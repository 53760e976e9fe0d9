import { describe, expect, it } from 'vitest'
import type { AttemptResult } from '../../../src/http/attempt.ts'
import type { CallSettings, Credentials } from '../../../src/http/call.ts'
import { Deadline } from '../../../src/http/deadline.ts'
import { tagOf } from '../../../src/orders/claim.ts'
import type { FoundRecord } from '../../../src/orders/journal.ts'
import type { SendOptions } from '../../../src/orders/key-attempts.ts'
import type { JournalRecord, Rejection } from '../../../src/orders/record.ts'
import { type Sent, sendOrder } from '../../../src/orders/send-order.ts'
import { LEFT_OPEN, recordOf, remember, storedRecords } from '../../support/order-context.ts'
import {
  API_KEY,
  answer,
  CREATED,
  callSettings,
  fails,
  inPlaceOfNext,
  later,
  MINUTE,
  NOW,
  type Place,
  type PlaceOptions,
  placeWith,
  problem,
  rotating,
  type Step,
  WINDOW,
} from '../../support/place.ts'

const OTHER_API_KEY = 'api-key-after-rotation'
const BUSY = 2 * MINUTE
const CONFLICT = problem(409, 'IDEMPOTENCY_CONFLICT')
const REFUSED: Rejection = { kind: 'refused', status: 402, code: 'NO' }

interface Given extends PlaceOptions {
  readonly record?: Partial<JournalRecord>
  /** The field removed from the record. */
  readonly without?: 'busyUntil' | 'firstSentAt'
  readonly settings?: Partial<CallSettings>
  readonly options?: Partial<SendOptions>
  /** Runs before the order is sent. */
  readonly first?: (place: Place) => void
}

type Sending = Place & {
  readonly sent: Sent
  readonly claimed: FoundRecord
  /** The stored record afterwards. */
  readonly stored: JournalRecord | undefined
  readonly keys: (string | undefined)[]
}

/** Sends a claimed order to a service with these responses, the last one forever. */
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
    unused: true,
    ...given.options,
  })
  const stored = await storedOf(place).catch(() => undefined)
  return { ...place, claimed, sent, stored, keys: requests.map(({ headers }) => headers['idempotency-key']) }
}

const storedOf = ({ context }: Place) => recordOf(context, 'ref:r1')
const lacks = (of: object | undefined, ...fields: string[]): void => {
  for (const field of fields) expect(of).not.toHaveProperty(field)
}

/** Another call writes the record before the response arrives. */
const overtaken: Step = async ({ context }) => {
  for (const found of await storedRecords(context))
    await remember(context, { ...found.record, claim: 'of another' }, found)
  return problem(402)
}
/** The store fails from now on. */
const unstored =
  (step: AttemptResult): Step =>
  ({ store }) => {
    store.update = fails
    return step
  }

describe('an order that is sent', () => {
  it.each<[boolean, Partial<JournalRecord>, Step[]]>([
    [true, { keyOrigin: 'random' }, [CREATED]],
    [false, { keyOrigin: 'derived' }, [CREATED]],
    [false, { keyOrigin: 'caller' }, [CREATED]],
    [false, { keyOrigin: 'random', ambiguous: true }, [CREATED]],
    [false, { keyOrigin: 'random', attempts: 1 }, [CREATED]],
    [false, { keyOrigin: 'random', state: 'created' }, [CREATED]],
    [false, { keyOrigin: 'random' }, [problem(429), CREATED]],
  ])(
    "an order is surely this call's own (%s) with a fresh key sent once: %j",
    async (fresh, record, steps) => {
      const { sent } = await send(steps, { record, settings: { maxRetries: 1 } })
      expect(sent).toMatchObject({ charged: 'yes', fresh })
    },
  )

  it('a response is understood even if the API key is a word in it', async () => {
    const { sent, stored } = await send([CONFLICT], { options: { credential: 'IDEMPOTENCY_CONFLICT' } })
    expect(sent.outcome).toMatchObject({ kind: 'conflict' })
    expect(stored).toMatchObject({ rejection: { kind: 'conflict' } })
    expect(stored?.rejection?.code).not.toBe('IDEMPOTENCY_CONFLICT')
  })
})

describe('what is told of an order that was not created', () => {
  const heard = { options: { earlier: REFUSED } }
  const retried = { ...heard, settings: { maxRetries: 2 } }

  it.each<[string, Step, Given, object]>([
    ['the refusal could not be stored', unstored(problem(402)), {}, { overtaken: false, fresh: false }],
    ['somebody else has written the record', overtaken, {}, { overtaken: true }],
    ['somebody else has, and the next key cannot be stored', overtaken, retried, { overtaken: true }],
    ['somebody else has, and no retry is left for the next key', overtaken, heard, { overtaken: true }],
  ])('an uncreated order is reported as unknown if %s', async (_what, step, given, facts) => {
    const { sent, stored, keys } = await send([step], given)
    expect(sent).toMatchObject({ charged: 'unknown', remembered: false, ...facts })
    expect(keys).toHaveLength(1)
    expect(stored).toMatchObject({ state: 'open', claim: step === overtaken ? 'of another' : 'mine' })
  })
})

describe('the last look before an order is sent', () => {
  const jump = (by: number): Given => ({ first: ({ runtime }) => runtime.jump(by) })
  const past = { record: { firstSentAt: NOW - WINDOW - 1 } }

  it.each<[boolean, string, Given]>([
    [true, 'a moment before its claim ends', jump(BUSY - 1)],
    [false, 'when its claim ends', jump(BUSY)],
    [false, 'without a claim', { without: 'busyUntil' }],
    [true, 'half a minute back', jump(-30_000)],
    [false, 'more than half a minute back', jump(-30_001)],
    [true, 'at the end of its window', { record: { firstSentAt: NOW - WINDOW } }],
    [false, 'past its window', past],
    [false, 'without the start of its window, which every claim stores', { without: 'firstSentAt' }],
  ])('the check before a send permits it (%s) %s', async (sends, _when, given) => {
    const { sent, requests, stored } = await send([CREATED], given)
    expect(requests).toHaveLength(sends ? 1 : 0)
    expect(sent).toMatchObject({ charged: sends ? 'yes' : 'no', ending: { end: sends ? 'done' : 'held' } })
    if (!sends) expect(stored).toMatchObject({ rejection: { kind: 'cancelled' } })
  })

  it('the check before a send runs before every attempt', async () => {
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

  it('a rotated API key is recorded once for all its attempts, and again when it changes back', async () => {
    const sending = await send([problem(429)], {
      settings: { maxRetries: 3 },
      credentials: rotated(OTHER_API_KEY, OTHER_API_KEY, API_KEY),
    })
    expect(sentBy(sending)).toEqual([API_KEY, OTHER_API_KEY, OTHER_API_KEY, API_KEY])
    // The versions: claimed, rotated, rotated back, closed.
    expect(sending.stored).toMatchObject({ version: 4, state: 'rejected', attempts: 4 })
  })
})

describe('an order that was refused before', () => {
  const IN_CONFLICT: Rejection = { kind: 'conflict', status: 409, code: 'IDEMPOTENCY_CONFLICT' }
  const earlier = { options: { earlier: REFUSED } }
  const limited: Rejection = { kind: 'not_processed', status: 429, code: 'NO' }
  const unlooked: Rejection = { ...REFUSED, kind: 'not_processed' }
  /** No other process can have sent the key. */
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
    [false, 'a response that once counted as a refusal', { ...REFUSED, status: 429 }, BUSY_NOW, {}],
    [false, 'the same refusal in doubt', REFUSED, NO, { ambiguous: true }],
    [true, 'a conflict, where every payload was refused', REFUSED, CONFLICT, ours],
    [true, 'a conflict again, where every payload was refused', IN_CONFLICT, CONFLICT, ours],
    [false, 'a conflict, where another process may have sent the same key', REFUSED, CONFLICT, refused],
    [false, 'a conflict, where another payload may have been bought', REFUSED, CONFLICT, {}],
    [false, 'a conflict, heard for the first time', undefined, CONFLICT, refused],
    [false, 'a conflict after an answer that said nothing', { kind: 'not_processed' }, CONFLICT, refused],
    [false, 'a conflict after it was given up', { kind: 'abandoned' }, CONFLICT, refused],
  ])(
    'a refused order moves to its next key (%s) when it receives %s',
    async (moves, _what, heard, step, record) => {
      const { keys, sent, stored } = await send([step, CREATED], {
        record,
        settings: { maxRetries: 1 },
        options: { once: true, earlier: heard },
      })
      expect(new Set(keys).size).toBe(moves ? 2 : 1)
      expect(stored?.generation).toBe(moves ? 1 : 0)
      expect(sent.charged === 'yes').toBe(moves)
    },
  )

  /** Records the claim with the next key. */
  const claimNoted = (): { claims: (JournalRecord | undefined)[]; steps: Step[] } => {
    const claims: (JournalRecord | undefined)[] = []
    const noted: Step = async (place) => {
      claims.push(await storedOf(place))
      return CREATED
    }
    return { claims, steps: [NO, noted] }
  }

  it('an order with the next key is sent with the API key that is current then', async () => {
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

  it('an order with the next key is claimed for the API key that was sent last', async () => {
    const { claims, steps } = claimNoted()
    const settings = { maxRetries: 1 }
    const { context, keys, stored } = await send(steps, { ...earlier, settings })
    expect(claims).toMatchObject([{ apiKeyTag: tagOf(context, keys[1] ?? '', API_KEY) }])
    // The versions: claimed, claimed with the next key, created. No correction in between.
    expect(stored).toMatchObject({ version: 3 })
    const proxied = await send([NO, CREATED], {
      settings,
      options: { earlier: REFUSED, credential: null },
      credentials: { rotates: false, get: () => null },
    })
    expect(proxied.stored?.apiKeyTag).toBe(tagOf(context, proxied.keys[1] ?? '', null))
  })

  it('a refused order moves on once, which uses a retry', async () => {
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

  /** The response arrives at the end of the call's time, before the end of its attempt's. */
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
    ['no retry is left after a conflict of its own refused payloads', CONFLICT, { record: ours }, conflict],
  ])(
    'an order stays refused with its key, and is not bought, if %s',
    async (_what, step, given, expected) => {
      const { keys, sent, stored } = await send([step], { ...earlier, ...given })
      expect(keys).toHaveLength(1)
      expect(sent).toMatchObject({ charged: 'no', remembered: true, attempts: 1 })
      const same = { state: 'rejected', key: 'key-r1', generation: 0, attempts: 1 }
      expect(stored).toMatchObject({ ...same, ...expected })
    },
  )
})
