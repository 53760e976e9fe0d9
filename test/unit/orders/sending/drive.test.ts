import { describe, expect, it } from 'vitest'
import type { AttemptResult } from '../../../../src/http/attempt.ts'
import type { CallSettings } from '../../../../src/http/call.ts'
import { Deadline, Interruption } from '../../../../src/http/deadline.ts'
import { tagOf } from '../../../../src/orders/protocol/keys.ts'
import type { Job } from '../../../../src/orders/record/context.ts'
import { readIntent } from '../../../../src/orders/record/intent.ts'
import type { JournalRecord, RecordContent, Rejection } from '../../../../src/orders/record/record.ts'
import { drive } from '../../../../src/orders/sending/drive.ts'
import type { CreateOrderRequest } from '../../../../src/schemas/order.ts'
import {
  derivedFor,
  LEFT_OPEN,
  REQUEST,
  recordOf,
  remember,
  storedRecords,
} from '../../../support/order-context.ts'
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
  WINDOW,
} from '../../../support/place.ts'

const NAMED: CreateOrderRequest = { ...REQUEST, metadata: { externalOrderId: 'r1' } }
const CONFLICT = problem(409, 'IDEMPOTENCY_CONFLICT')
const rejection: Rejection = { kind: 'refused', status: 402, code: 'NO' }
/** An earlier call was refused. */
const REFUSED = { state: 'rejected', ambiguous: false, rejection } as const
const OTHER_API_KEY = 'api-key-after-rotation'

interface Given extends PlaceOptions {
  /** The record that an earlier call left, ten minutes ago. */
  readonly left?: Partial<RecordContent>
  readonly leftAgo?: number
  readonly request?: CreateOrderRequest
  readonly settings?: Partial<CallSettings>
  readonly job?: Partial<Job>
  /** Runs before the call. */
  readonly first?: (place: Place) => unknown
}

/** One call for an order against a service with these responses, the last one forever. */
async function driven(steps: readonly Step[], given: Given = {}) {
  const place = placeWith(steps, given)
  const { context, runtime, requests } = place
  const intent = readIntent(runtime.deriveId, given.request ?? NAMED, {})
  const ago = given.leftAgo ?? 10 * MINUTE
  if (given.left !== undefined) {
    runtime.jump(-ago)
    const { fingerprint, body, slot } = intent
    const { externalOrderId: _reference, ...unnamed } = LEFT_OPEN
    const base = intent.externalOrderId === undefined ? { ...unnamed, origin: 'random' as const } : LEFT_OPEN
    const times = {
      firstSentAt: NOW - ago,
      apiKeyTag: tagOf(context, given.left.key ?? LEFT_OPEN.key, API_KEY),
    }
    await remember(context, { ...base, slot, fingerprint, body, ...times, ...given.left })
    runtime.jump(ago)
  }
  await given.first?.(place)
  const settings = callSettings(given.settings)
  const result = await drive(context, {
    command: 'create',
    operation: 'orders.create',
    rowId: intent.rowId,
    intent: given.job?.command === 'recover' ? undefined : intent,
    settings,
    deadline: new Deadline(runtime, settings.totalTimeout, settings.signal),
    callId: 'call',
    takeOver: false,
    isNotListed: false,
    ...given.job,
  })
  const took = runtime.monotonic()
  const stored = await recordOf(context, intent.slot).catch(() => undefined)
  const keys = requests.map(({ headers }) => headers['idempotency-key'])
  return { ...place, result, stored, keys, took }
}

/** Another call writes the record before this step. */
const overtaking =
  (changes: Partial<JournalRecord>, step: AttemptResult): Step =>
  async ({ context }) => {
    for (const found of await storedRecords(context))
      await remember(context, { ...found.record, claim: 'of another', ...changes }, found)
    return step
  }

describe('an order that was refused before', () => {
  const ours = { origin: 'random', key: 'k0' } as const
  const limited: Rejection = { kind: 'not_processed', status: 429, code: 'NO' }

  it('an order whose charge is proven does not move on to its next key', async () => {
    const { keys, stored, result } = await driven([answer(201, '{'), CONFLICT, CREATED], {
      left: { ...REFUSED, ...ours },
      settings: { maxRetries: 1 },
    })
    expect(keys).toEqual(['k0', 'k0'])
    expect(result).toMatchObject({ end: 'sent', charged: 'yes' })
    expect(stored).toMatchObject({ state: 'created', key: 'k0' })
  })

  it.each<[boolean, string, Partial<RecordContent>, AttemptResult]>([
    [true, 'the same refusal', {}, problem(402)],
    [false, 'another status', {}, problem(422)],
    [false, 'another code', {}, problem(402, 'OTHER')],
    [false, 'a response that says nothing of the order', {}, problem(429)],
    [false, 'a response that said nothing, twice', { rejection: limited }, problem(429)],
    [false, 'a refusal after one that said nothing', { rejection: limited }, problem(402)],
    [false, 'a refusal after it was abandoned', { rejection: { kind: 'abandoned' } }, problem(402)],
    [false, "the same refusal under the caller's key", { origin: 'caller', key: 'k' }, problem(402)],
    [true, 'a conflict, where nobody else can have sent the key', ours, CONFLICT],
    [false, 'a conflict, where another process may have sent it', {}, CONFLICT],
    [false, 'a conflict after an attempt in doubt', { ...ours, ambiguous: true }, CONFLICT],
  ])('an order moves on to its next key (%s) if it hears %s', async (moves, _what, left, result) => {
    const {
      keys,
      stored,
      result: sent,
    } = await driven([result, CREATED], {
      left: { ...REFUSED, ...left },
      settings: { maxRetries: result === CONFLICT || moves ? 1 : 0 },
    })
    expect(new Set(keys).size).toBe(moves ? 2 : 1)
    expect(stored?.generation).toBe(moves ? 1 : 0)
    expect(sent).toMatchObject({ end: 'sent', charged: moves ? 'yes' : expect.stringMatching(/no|unknown/) })
  })

  it('an order moves on once in a call, which uses a retry, and claims the next key first', async () => {
    const claims: (JournalRecord | undefined)[] = []
    const noting: Step = async ({ context }) => {
      claims.push(await recordOf(context, 'ref:r1'))
      return problem(402)
    }
    const { keys, stored, result } = await driven([noting], { left: REFUSED, settings: { maxRetries: 5 } })
    expect(keys).toEqual([derivedFor('r1'), derivedFor('r1', 1)])
    const claim = { state: 'open', key: derivedFor('r1', 1), ambiguous: false, firstSentAt: NOW, attempts: 2 }
    expect(claims[1]).toMatchObject({ ...claim, firstKeySentAt: NOW - 10 * MINUTE })
    expect(result).toMatchObject({ charged: 'no', attempts: 2, remembered: true })
    expect(stored).toMatchObject({ state: 'rejected', generation: 1, attempts: 3, rejection })
  })

  it.each<[string, Step, Given]>([
    ['no retry is left', problem(402), {}],
    [
      'no time is left',
      async ({ runtime }) => {
        await later(runtime, 2 * MINUTE)
        return problem(402)
      },
      { settings: { maxRetries: 1 } },
    ],
    [
      'the store does not confirm the next key',
      ({ store }) => {
        inPlaceOfNext(store, 'update')
        return problem(402)
      },
      { settings: { maxRetries: 1 } },
    ],
    ['another call was refused meanwhile', problem(402), { leftAgo: -1, settings: { maxRetries: 1 } }],
  ])('an order stays refused under its key if %s', async (_if, step, given) => {
    const { keys, stored, result } = await driven([step], { left: REFUSED, ...given })
    expect(keys).toEqual([derivedFor('r1')])
    expect(result).toMatchObject({ charged: 'no', remembered: true })
    expect(stored).toMatchObject({ state: 'rejected', key: derivedFor('r1'), rejection })
  })

  it('an earlier refusal of the key outlives a response that says nothing of the order', async () => {
    const { stored } = await driven([problem(429)], { left: REFUSED })
    expect(stored).toMatchObject({ state: 'rejected', rejection, attempts: 2 })
  })
})

describe('the last check before an attempt', () => {
  it.each<[boolean, string, Given]>([
    [true, 'the window has room for one attempt', { leftAgo: WINDOW - 60_000 }],
    [
      false,
      'the window ends during the claim',
      {
        leftAgo: WINDOW - 60_000,
        first: ({ runtime, store }) => beforeCall(store, 'update', () => later(runtime, 1)),
      },
    ],
    [
      false,
      'the claim ends during its write',
      { first: ({ runtime, store }) => beforeCall(store, 'update', () => runtime.jump(2 * MINUTE)) },
    ],
  ])('an order is sent (%s) if %s', async (sends, _if, given) => {
    const { requests } = await driven([CREATED], { left: {}, ...given })
    expect(requests).toHaveLength(sends ? 1 : 0)
  })

  it('the check runs before every attempt', async () => {
    const slow: Step = ({ runtime }) => {
      runtime.jump(3 * MINUTE)
      return answer(503)
    }
    const { requests, result } = await driven([slow], { settings: { maxRetries: 3 } })
    expect(requests).toHaveLength(1)
    expect(result).toMatchObject({ charged: 'unknown', ending: { end: 'stopped' } })
  })
})

describe('the API key of an order', () => {
  it('an order in doubt is not sent under another API key', async () => {
    const credentials = rotating(() => OTHER_API_KEY)
    expect((await driven([CREATED], { left: {}, credentials })).result).toMatchObject({
      end: 'ruled',
      step: { step: 'refuse', because: 'api_key' },
    })
    const recovery = { command: 'recover' } as const
    expect((await driven([CREATED], { left: {}, credentials, job: recovery })).result).toMatchObject({
      end: 'ruled',
      step: { step: 'look_up', because: 'api_key_changed' },
    })
    expect((await driven([CREATED], { left: REFUSED, credentials })).result).toMatchObject({ charged: 'yes' })
  })

  it('an API key that rotates during a call is stored before it sends, unless the order is in doubt', async () => {
    const rotation = () => {
      const keys = [API_KEY, OTHER_API_KEY]
      return rotating(() => keys.shift() ?? OTHER_API_KEY)
    }
    const sent = await driven([problem(429), CREATED], {
      settings: { maxRetries: 1 },
      credentials: rotation(),
    })
    // The versions: claimed, claimed for the other API key, created.
    expect(sent.stored).toMatchObject({
      version: 3,
      apiKeyTag: tagOf(sent.context, derivedFor('r1'), OTHER_API_KEY),
    })
    expect(sent.requests.at(-1)?.headers['authorization']).toBe(`Bearer ${OTHER_API_KEY}`)
    const lost = await driven([LOST, CREATED], { settings: { maxRetries: 1 }, credentials: rotation() })
    expect(lost.requests).toHaveLength(1)
    expect(lost.result).toMatchObject({ charged: 'unknown', ending: { end: 'stopped' } })
  })
})

describe('a call that another call overtakes', () => {
  it.each<[string, Partial<JournalRecord>, AttemptResult]>([
    ['unknown', {}, problem(402)],
    ['unknown', { state: 'rejected', rejection: { kind: 'abandoned' } }, problem(402)],
    ['yes', {}, CREATED],
    ['yes', { state: 'rejected', rejection: { kind: 'abandoned' } }, CREATED],
  ])('an overtaken call says charged %s, if the record is %j', async (charged, changes, result) => {
    const { result: sent, stored } = await driven([overtaking(changes, result)])
    expect(sent).toMatchObject({ charged, remembered: charged === 'yes' })
    expect(stored).toMatchObject(
      charged === 'yes' ? { state: 'created', order: ORDER } : { claim: 'of another' },
    )
  })

  it('a nameless order in doubt is not overwritten by the proof of the one before it', async () => {
    const next = overtaking({ key: 'k2' }, CREATED)
    const { result, stored } = await driven([next], { request: REQUEST })
    expect(result).toMatchObject({ charged: 'yes', remembered: false })
    expect(stored).toMatchObject({ state: 'open', key: 'k2' })
  })
})

describe('a call that cannot claim the order', () => {
  const broken = (operations: object): Given => ({
    first: ({ store }) => void Object.assign(store, operations),
  })
  const keyless = (get: () => Promise<never>, left?: Partial<RecordContent>): Given => ({
    credentials: rotating(get),
    ...(left && { left }),
  })
  const keylessOver = (operations: object): Given => ({
    credentials: rotating(async () => Promise.reject(GONE)),
    first: ({ store }) => beforeCall(store, 'get', () => void Object.assign(store, operations)),
  })
  it.each<[string, string, object, Given]>([
    ['no', 'there is no API key', { error: GONE }, keyless(fails)],
    ['no', 'there is no API key in time', new Interruption('deadline'), keyless(hangs)],
    ['no', 'there is no API key for a refused order', { error: GONE }, keyless(fails, REFUSED)],
    ['unknown', 'there is no API key for an order in doubt', { error: GONE }, keyless(fails, {})],
    [
      'yes',
      'there is no API key to read an order that exists',
      { error: GONE },
      keyless(fails, { state: 'created' }),
    ],
    [
      'unknown',
      'there is no API key, and no door can be shut',
      { error: GONE },
      keylessOver({ insert: fails }),
    ],
    ['unknown', 'the store takes no write', { result: 'doubt' }, broken({ insert: fails })],
    ['unknown', 'the store does not respond', { result: 'doubt' }, broken({ insert: hangs })],
    [
      'unknown',
      'the store cannot be read in time',
      new Interruption('deadline'),
      { ...broken({ get: hangs }), settings: { totalTimeout: 1000 } },
    ],
  ])('a call says charged %s if %s', async (charged, _if, why, given) => {
    const { result, requests, took } = await driven([CREATED], given)
    expect(result).toMatchObject({ end: 'unclaimed', charged, why })
    expect(requests).toEqual([])
    expect(took).toBeLessThanOrEqual((given.settings?.totalTimeout ?? 2 * MINUTE) + 1000)
  })

  it('a call says no after a write in doubt, once the door is shut', async () => {
    const { result, stored, store } = await driven([CREATED], {
      first: ({ store: its }) => inPlaceOfNext(its, 'insert'),
    })
    expect(result).toMatchObject({ end: 'unclaimed', charged: 'no', why: { result: 'doubt' } })
    expect(stored).toBeUndefined()
    expect((await store.list('s', { since: 0, limit: 5 })).rows).toMatchObject([{ version: 1, open: false }])
  })
})

describe('a call that waits', () => {
  const busy = { busyUntil: NOW + MINUTE }
  it('an order that another process has is read after 50 ms, then with doubled waits, and claimed after 15 s', async () => {
    const reads: number[] = []
    const { result, stored } = await driven([CREATED], {
      left: busy,
      first: ({ store, runtime }) => beforeCall(store, 'get', () => reads.push(runtime.now() - NOW)),
    })
    expect(reads.slice(0, 8)).toEqual([0, 50, 150, 350, 750, 1550, 2550, 3550])
    expect(result).toMatchObject({ charged: 'yes', record: { firstSentAt: NOW - 10 * MINUTE } })
    expect(stored).toMatchObject({ state: 'created' })
    expect(reads).toContain(15_000)
  })

  it.each<[object, Given]>([
    [{ step: 'in_progress' }, { left: busy, job: { command: 'recover' } }],
    [
      { step: 'refuse', because: 'duplicate' },
      { left: { ...busy, key: 'k' }, request: REQUEST },
    ],
    [{ step: 'nothing' }, { job: { command: 'recover' } }],
  ])('a call ends with %j instead of waiting', async (step, given) => {
    const { result, requests } = await driven([CREATED], given)
    expect(result).toMatchObject({ end: 'ruled', step })
    expect(requests).toEqual([])
  })

  it('recovery takes a claim over if it is told to', async () => {
    const { result } = await driven([CREATED], { left: busy, job: { command: 'recover', takeOver: true } })
    expect(result).toMatchObject({ charged: 'yes' })
  })

  it('a lost claim is tried again immediately, then with pauses', async () => {
    const claims: number[] = []
    await driven([CREATED], {
      left: {},
      settings: { totalTimeout: 1000 },
      first: ({ store, runtime }) => {
        store.update = async () => {
          claims.push(runtime.now() - NOW)
          return false
        }
      },
    })
    expect(claims).toEqual([0, 0, 100, 300, 700])
  })
})

it.each<[boolean | undefined, string, Given, AttemptResult]>([
  [true, 'the service says so', {}, answer(201, ORDER, { 'idempotent-replayed': 'true' })],
  [false, 'the service denies it', {}, answer(201, ORDER, { 'idempotent-replayed': 'false' })],
  [undefined, 'the service says nothing', {}, CREATED],
  [undefined, 'the service says something else', {}, answer(201, ORDER, { 'idempotent-replayed': 'yes' })],
  [false, 'the key is new and random', { request: REQUEST }, CREATED],
  [
    true,
    'an earlier call may have sent it',
    { left: {} },
    answer(201, ORDER, { 'idempotent-replayed': 'false' }),
  ],
  [undefined, 'an earlier call was refused', { left: REFUSED }, CREATED],
])('an order existed before the call (%s) if %s', async (replayed, _if, given, result) => {
  expect((await driven([result], given)).result).toMatchObject({ charged: 'yes', replayed })
})

it('a response is understood even if the API key is a word in it', async () => {
  const { result, stored } = await driven([CONFLICT], {
    credentials: { rotates: false, get: () => 'IDEMPOTENCY_CONFLICT' },
  })
  expect(result).toMatchObject({ charged: 'unknown', outcome: { kind: 'conflict' } })
  expect(stored).toMatchObject({ state: 'open', hold: 'conflict', ambiguous: true })
})
