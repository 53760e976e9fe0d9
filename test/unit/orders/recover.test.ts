import { describe, expect, it } from 'vitest'
import { ConfigurationError } from '../../../src/errors/classes.ts'
import type { SettledEvent } from '../../../src/hooks.ts'
import type { AttemptResult } from '../../../src/http/attempt.ts'
import type { CallSettings } from '../../../src/http/call.ts'
import { askedContent, makeKey, tagOf } from '../../../src/orders/claim.ts'
import { readIntent } from '../../../src/orders/intent.ts'
import type { FoundRecord } from '../../../src/orders/journal.ts'
import type { RecordContent } from '../../../src/orders/record.ts'
import { type RecoverSettings, recover } from '../../../src/orders/recover.ts'
import type { RecoveryOutcome } from '../../../src/orders/recovery-outcome.ts'
import { forgottenRow } from '../../../src/orders/row.ts'
import type { Order } from '../../../src/schemas/order.ts'
import { all } from '../../support/all.ts'
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
  LOST,
  later,
  MINUTE,
  NOW,
  ORDER,
  type Place,
  placeWith,
  problem,
  rotating,
  type Step,
  TIMED_OUT,
  WINDOW,
} from '../../support/place.ts'
import { errorOf } from '../../support/service.ts'

/** Returns this response for a read of the list of orders. */
const listing =
  (orders: readonly object[], placed: AttemptResult): Step =>
  (_place, asked) =>
    asked.startsWith('/v1/orders?') ? answer(200, orders) : placed
const EXISTS = { state: 'created', readable: true, order: ORDER } as const

/** An order that a call left open, in doubt. */
async function leave(
  { context, runtime }: Place,
  reference: string,
  changes: Partial<RecordContent> = {},
): Promise<FoundRecord> {
  const request = { serviceId: 's', target: 't', quantity: 1, metadata: { externalOrderId: reference } }
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

/** Orders that calls left open, in this order. */
async function leaveAll(place: Place, references: readonly string[]): Promise<void> {
  for (const [index, reference] of references.entries())
    await leave(place, reference, { firstSentAt: NOW + index })
}

type Given = Partial<Omit<RecoverSettings<Order>, 'settings'>> & {
  readonly settings?: Partial<CallSettings>
}

const start = (
  { context }: Place,
  { settings, ...options }: Given = {},
): AsyncGenerator<RecoveryOutcome, void, undefined> =>
  recover(context, {
    settings: callSettings({ maxRetries: 4, ...settings }),
    concurrency: 1,
    takeOver: false,
    finish: async (order) => order,
    checkOpen: () => {},
    ...options,
  })

const recovered = (place: Place, given: Given = {}): Promise<RecoveryOutcome[]> => all(start(place, given))
const failureOf = (place: Place, given: Given = {}): Promise<unknown> => errorOf(recovered(place, given))

const textsOf = (outcomes: readonly RecoveryOutcome[]): string[] =>
  outcomes.map(({ outcome, record, reason, error }) =>
    [record.externalOrderId, outcome, reason, error?.code].filter(Boolean).join(' '),
  )

describe('recover()', () => {
  it('recover() continues every open order, in the order in which the windows end', async () => {
    const place = placeWith([CREATED])
    // The first send was long after the beginning.
    await leave(place, 'r2', { firstSentAt: NOW - 2 * MINUTE })
    await leave(place, 'r1', { firstSentAt: NOW - 3 * MINUTE })
    place.runtime.jump(MINUTE)
    await leave(place, 'r4')
    await leave(place, 'r3', { firstSentAt: NOW })
    await recovered(place)
    expect(place.asked).toEqual(['r1', 'r2', 'r3', 'r4'])
  })

  it('recover() sends one request for each order, even if another API key might help', async () => {
    const credentials = rotating(() => API_KEY)
    const place = placeWith([answer(401)], { credentials })
    await leave(place, 'r1')
    expect(textsOf(await recovered(place))).toEqual(['r1 still_open authentication'])
    expect(place.asked).toEqual(['r1'])
  })

  it('recover() works without an API key if a proxy adds it', async () => {
    const credentials = { rotates: false, get: () => null }
    const place = placeWith([listing([], CREATED)], { credentials })
    const apiKeyTag = tagOf(place.context, makeKey(place.context, 'r1', 0).key, null)
    await leave(place, 'r1', { apiKeyTag })
    await leave(place, 'r2', { apiKeyTag: 'of some API key' })
    expect(textsOf(await recovered(place))).toEqual(['r1 created', 'r2 needs_attention api_key_changed'])
    expect(await recordOf(place.context, 'ref:r1')).toMatchObject({ apiKeyTag })
  })

  it('recover() skips an order that was settled and removed, or forgotten, before its turn', async () => {
    const place = placeWith([CREATED])
    const gone = await leave(place, 'gone')
    const forgotten = await leave(place, 'forgotten')
    await leave(place, 'r3', { firstSentAt: NOW + 1 })
    const { get } = place.store
    place.store.get = async (scope, id) => {
      if (id === gone.id) return undefined
      return id === forgotten.id ? forgottenRow(forgotten.row, NOW) : await get.call(place.store, scope, id)
    }
    expect(textsOf(await recovered(place))).toEqual(['r3 created'])
  })

  it('recover() skips a row that was forgotten while it was listed', async () => {
    const place = placeWith([CREATED])
    const { row } = await leave(place, 'r1')
    place.store.listOpen = async () => ({ rows: [forgottenRow(row, NOW)] })
    expect(await recovered(place)).toEqual([])
  })
})

describe('a live call of this process', () => {
  const enter = ({ context }: Place, { id, record }: FoundRecord): void => {
    const { fingerprint, key } = record
    context.live.enter(id, { fingerprint, idempotencyKey: key, request: {} })
  }

  it('a live call keeps its order, and no API key is requested', async () => {
    let asked = 0
    const credentials = rotating(() => {
      asked++
      return API_KEY
    })
    const place = placeWith([CREATED], { credentials })
    enter(place, await leave(place, 'r1', { hold: 'aborted' }))
    expect(textsOf(await recovered(place, { takeOver: true }))).toEqual(['r1 in_progress'])
    expect(asked).toBe(0)
  })

  it('a live call keeps its order even if it began during the request for the API key', async () => {
    const credentials = rotating(() => {
      enter(place, left)
      return API_KEY
    })
    const place = placeWith([CREATED], { credentials })
    const left = await leave(place, 'r1')
    expect(textsOf(await recovered(place))).toEqual(['r1 in_progress'])
    expect(place.asked).toEqual([])
  })

  it('a live call keeps its order even if it ends right after the read, without a request for the API key', async () => {
    const place = placeWith([CREATED])
    enter(place, await leave(place, 'r1'))
    const { live } = place.context
    const calls = [live.get((await storedRecords(place.context))[0]?.id ?? '')]
    Object.assign(live, { get: () => calls.shift() })
    expect(textsOf(await recovered(place))).toEqual(['r1 in_progress'])
    expect(place.asked).toEqual([])
  })
})

describe('recovery that is ended', () => {
  const closed = new ConfigurationError('closed', { charged: 'unknown' })

  it.each([
    [1, []],
    [2, []],
    [3, ['r1']],
  ])(
    'closing the client ends recovery before the next row and the next order: check %i',
    async (last, sent) => {
      const place = placeWith([CREATED])
      await leaveAll(place, ['r1', 'r2'])
      let checks = 0
      const checkOpen = (): void => {
        if (++checks > last) throw closed
      }
      expect(await failureOf(place, { checkOpen })).toBe(closed)
      expect(place.asked).toEqual(sent)
    },
  )

  it.each(['store', 'API key'])('an abort ends recovery while it waits for the %s', async (slow) => {
    const controller = new AbortController()
    const waits = (): Promise<never> => {
      controller.abort()
      return hangs()
    }
    const credentials = rotating(() => (slow === 'store' ? API_KEY : waits()))
    const place = placeWith([CREATED], { credentials })
    await leave(place, 'r1')
    if (slow === 'store') place.store.get = waits
    const { signal } = controller
    const facts = { code: 'aborted', charged: 'unknown', attempts: 0 }
    expect(await failureOf(place, { settings: { signal } })).toMatchObject(facts)
    expect(place.asked).toEqual([])
  })

  it('a mistake of the caller ends recovery with its own error', async () => {
    const bug = new TypeError('a mistake of ours')
    const place = placeWith([() => Promise.reject(bug)])
    await leave(place, 'r1')
    expect(await failureOf(place)).toBe(bug)
  })
})

describe('trouble with one order', () => {
  it('a store failure with one order makes recovery fail', async () => {
    const place = placeWith([CREATED])
    await leave(place, 'r1')
    place.store.get = fails
    expect(await failureOf(place)).toMatchObject({ code: 'store', charged: 'unknown' })

    place.store.get = hangs
    const late = { code: 'timeout', charged: 'unknown', attempts: 0 }
    const error = await failureOf(place, { settings: { totalTimeout: 1000 } })
    expect(error).toMatchObject({ ...late, message: expect.stringContaining('orders.recover') })
  })

  const unread = { state: 'created', ambiguous: false } as const
  it.each([
    ['unknown', 'timeout', {}, hangs],
    ['unknown', 'configuration', {}, fails],
    ['yes', 'timeout', unread, hangs],
    ['yes', 'configuration', unread, fails],
  ])('an order stays open if the API key does not arrive (%s, %s)', async (charged, code, changes, get) => {
    const place = placeWith([CREATED], { credentials: rotating(get) })
    const { record } = await leave(place, 'r1', changes)
    const error = { code, charged, attempts: 0, idempotencyKey: record.key, externalOrderId: 'r1' }
    expect(await recovered(place)).toMatchObject([{ outcome: 'still_open', error }])
  })

  it('an order settled elsewhere before its request is reported with its outcome', async () => {
    const credentials = rotating(async () => {
      await remember(place.context, { ...left.record, ...EXISTS }, left)
      throw GONE
    })
    const place = placeWith([CREATED], { credentials })
    const left = await leave(place, 'r1')
    expect(await recovered(place)).toMatchObject([{ outcome: 'created', order: ORDER }])
  })
})

describe('three failures in a row to reach the service', () => {
  const walk = async (answers: Readonly<Record<string, AttemptResult>>): Promise<readonly string[]> => {
    const place = placeWith([(_place, asked) => answers[asked] ?? CREATED])
    await leaveAll(place, Object.keys(answers))
    await recovered(place)
    return place.asked
  }

  it('three timeouts in a row end the walk', async () => {
    const answers = { r1: TIMED_OUT, r2: TIMED_OUT, r3: LOST, r4: CREATED }
    expect(await walk(answers)).toEqual(['r1', 'r2', 'r3'])
  })

  it.each<[string, AttemptResult]>([
    ['an order', CREATED],
    ['an error status', answer(503)],
    ['a refusal', problem(402)],
  ])('the count of failures in a row restarts after %s', async (_what, between) => {
    const lost = { r4: LOST, r5: LOST, r6: LOST }
    const asked = await walk({ r1: LOST, r2: LOST, r3: between, ...lost, r7: CREATED })
    expect(asked).toEqual(['r1', 'r2', 'r3', 'r4', 'r5', 'r6'])
  })
})

describe('an order that recovery sends', () => {
  it('recovery does not send an order whose window ended while the claim was stored', async () => {
    const place = placeWith([listing([], CREATED)])
    await leave(place, 'r1', { firstSentAt: NOW - WINDOW + 1000 })
    beforeCall(place.store, 'update', () => later(place.runtime, 2000))
    const outcomes = await recovered(place, { settings: { timeout: 1000 } })
    expect(textsOf(outcomes)).toEqual(['r1 still_open timeout'])
    expect(place.asked).toEqual([])
  })

  it.each([
    ['that the connection was lost', LOST],
    ['402', problem(402)],
  ])(
    'an order that another process placed is reported as created, although recovery receives %s',
    async (_what, result) => {
      const placed: Step = async ({ context }) => {
        for (const found of await storedRecords(context))
          await remember(context, { ...found.record, ...EXISTS }, found)
        return result
      }
      const place = placeWith([placed])
      await leave(place, 'r1')
      const [outcome] = await recovered(place)
      expect(outcome).toMatchObject({ outcome: 'created', order: ORDER, record: { state: 'created' } })
      expect(outcome).not.toHaveProperty('error')
    },
  )
})

describe('an order that exists without its body', () => {
  it('an order without a body is read by its id, and looked up if the id is unknown', async () => {
    const place = placeWith([listing([], answer(200, ORDER))])
    const created = { state: 'created', ambiguous: false } as const
    for (const [reference, changes] of [
      ['r1', { ...created, order: { id: 'o1' } }],
      ['r2', created],
    ] as const) {
      const { record, row, id } = await leave(place, reference, changes)
      const { body: _body, ...rest } = record
      await remember(place.context, rest, { id, row, record })
    }
    const outcomes = await recovered(place)
    expect(textsOf(outcomes)).toEqual(['r1 created', 'r2 needs_attention unreadable'])
    expect(place.asked).toContain('/v1/orders/o1')
  })

  it('an id in an open record does not prove that an order exists', async () => {
    const place = placeWith([listing([], answer(200, ORDER))])
    await leave(place, 'r1', { hold: 'aborted', order: { id: 'o1' } })
    expect(textsOf(await recovered(place))).toEqual(['r1 needs_attention aborted'])
    expect(place.asked).not.toContain('/v1/orders/o1')
  })
})

describe('what hooks are told of a recovered order', () => {
  const told = async (
    result: AttemptResult,
    changes: Partial<RecordContent> = {},
  ): Promise<SettledEvent[]> => {
    const place = placeWith([listing([], result)])
    await leave(place, 'r1', changes)
    await recovered(place)
    return place.settled.filter(({ path, recovery }) => path === '/v1/orders' && recovery !== undefined)
  }

  const FLAWED = answer(201, { ...ORDER, amount: 1.5 })
  const HELD = { ambiguous: false, firstSentAt: NOW, hold: 'refused' } as const
  const bought = { recovery: 'created', charged: 'yes', orderId: 'o1' }
  it.each<[string, AttemptResult, Partial<RecordContent>, object]>([
    ['created', CREATED, {}, { ...bought, ok: true }],
    ['created and not readable', FLAWED, {}, { ...bought, ok: false, code: 'invalid_response' }],
    ['rejected', problem(402, 'NO'), HELD, { recovery: 'needs_attention', ok: false, charged: 'unknown' }],
    ['lost', LOST, {}, { recovery: 'still_open', ok: false, charged: 'unknown', code: 'connection' }],
  ])('hooks receive the outcome of a recovered order: %s', async (_what, result, changes, expected) => {
    const [event, ...more] = await told(result, changes)
    expect(more).toEqual([])
    const call = { operation: 'orders.recover', method: 'POST', path: '/v1/orders', durationMs: 0 }
    expect(event).toMatchObject({ ...call, externalOrderId: 'r1', ...expected })
  })
})
