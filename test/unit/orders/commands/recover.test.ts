import { describe, expect, it } from 'vitest'
import type { AttemptResult } from '../../../../src/http/attempt.ts'
import { type RecoverSettings, recover } from '../../../../src/orders/commands/recover.ts'
import type { RecoveryOutcome } from '../../../../src/orders/commands/recovery-outcome.ts'
import { tagOf } from '../../../../src/orders/protocol/keys.ts'
import type { FoundRecord } from '../../../../src/orders/record/journal.ts'
import type { RecordContent } from '../../../../src/orders/record/record.ts'
import { emptyRow } from '../../../../src/orders/record/row.ts'
import { all } from '../../../support/all.ts'
import { errorOf } from '../../../support/errors.ts'
import { leftOpen, remember } from '../../../support/order-context.ts'
import {
  API_KEY,
  answer,
  CREATED,
  callSettings,
  fails,
  hangs,
  LOST,
  MINUTE,
  NOW,
  ORDER,
  type Place,
  placeWith,
  problem,
  rotating,
  TIMED_OUT,
  WINDOW,
} from '../../../support/place.ts'

/** An order that a call left open, in doubt. */
function leave(place: Place, reference: string, changes: Partial<RecordContent> = {}): Promise<FoundRecord> {
  const { context, runtime } = place
  const left = leftOpen(reference)
  const times = { firstSentAt: runtime.now(), apiKeyTag: tagOf(context, left.key, API_KEY) }
  return remember(context, { ...left, ...times, ...changes })
}

const recovered = ({ context }: Place, changes: Partial<RecoverSettings> = {}): Promise<RecoveryOutcome[]> =>
  all(
    recover(context, {
      settings: callSettings({ maxRetries: 4 }),
      concurrency: 1,
      takeOver: false,
      ...changes,
    }),
  )

const textsOf = (outcomes: readonly RecoveryOutcome[]): string[] =>
  outcomes.map(({ outcome, record, reason, error }) =>
    [record.externalOrderId, outcome, reason, error?.code].filter(Boolean).join(' '),
  )

describe('a recovery', () => {
  it('orders are sent as their windows end, and those past their window are looked up last', async () => {
    const place = placeWith([(_place, asked) => (asked.startsWith('/') ? answer(200, []) : CREATED)])
    for (const [reference, age] of Object.entries({
      past: 2 * WINDOW,
      r2: 2 * MINUTE,
      r1: 3 * MINUTE,
      r3: 0,
    }))
      await leave(place, reference, { firstSentAt: NOW - age })
    expect(textsOf(await recovered(place))).toEqual([
      'r1 created',
      'r2 created',
      'r3 created',
      'past needs_attention past_window',
    ])
    expect(place.asked.slice(0, 3)).toEqual(['r1', 'r2', 'r3'])
  })

  it('an order is sent once, whatever the response', async () => {
    for (const [result, text] of [
      [answer(401), 'r1 still_open authentication'],
      [answer(503), 'r1 still_open server'],
      [problem(409, 'IDEMPOTENCY_IN_PROGRESS'), 'r1 in_progress idempotency_in_progress'],
      [answer(201, '{'), 'r1 created unreadable invalid_response'],
    ] as const) {
      const place = placeWith([result], { credentials: rotating(() => API_KEY) })
      await leave(place, 'r1')
      expect(textsOf(await recovered(place))).toEqual([text])
      expect(place.asked).toEqual(['r1'])
    }
  })

  it('an order that is settled, removed or forgotten before its turn is not sent', async () => {
    const place = placeWith([CREATED])
    const gone = await leave(place, 'gone')
    const forgotten = await leave(place, 'forgotten')
    const settled = await leave(place, 'settled')
    const { get } = place.store
    const closed = await remember(
      place.context,
      { ...settled.record, state: 'created', order: ORDER },
      settled,
    )
    place.store.listOpen = async () => ({ rows: [gone.row, forgotten.row, settled.row] })
    place.store.get = async (scope, id) => {
      if (id === gone.id) return undefined
      if (id === forgotten.id) return emptyRow('s', id, NOW, forgotten.row)
      return await get.call(place.store, scope, id)
    }
    expect(await recovered(place)).toMatchObject([
      { outcome: 'created', record: { version: closed.record.version } },
    ])
    expect(place.asked).toEqual([])
  })

  it('an abort or a closed client ends the run before the next order', async () => {
    const controller = new AbortController()
    const aborting = placeWith([
      () => {
        controller.abort()
        return CREATED
      },
    ])
    const closing = placeWith([
      ({ context }) => {
        void context.lifetime.end()
        return CREATED
      },
    ])
    for (const place of [aborting, closing]) for (const r of ['r1', 'r2']) await leave(place, r)
    const settings = callSettings({ signal: controller.signal })
    expect(await errorOf(recovered(aborting, { settings }))).toMatchObject({
      code: 'aborted',
      charged: 'unknown',
    })
    expect(aborting.asked).toHaveLength(1)
    expect(await errorOf(recovered(closing))).toMatchObject({ code: 'configuration', charged: 'unknown' })
    expect(closing.asked).toHaveLength(1)
  })
})

describe('trouble in a recovery', () => {
  it.each<[string, object, object]>([
    ['fails', { get: fails }, { code: 'store', charged: 'unknown' }],
    ['does not respond', { get: hangs }, { code: 'timeout', charged: 'unknown' }],
    [
      'takes no claim',
      { update: fails },
      { outcome: 'still_open', error: { code: 'store', charged: 'unknown' } },
    ],
  ])('a store that %s is reported, and nothing is sent', async (_what, broken, expected) => {
    const place = placeWith([CREATED])
    await leave(place, 'r1')
    Object.assign(place.store, broken)
    const settings = callSettings({ totalTimeout: 1000 })
    const [end] = await recovered(place, { settings }).catch((error: unknown) => [error])
    expect(end).toMatchObject(expected)
    expect(place.asked).toEqual([])
  })

  it.each([
    ['unknown', {}],
    ['yes', { state: 'created', ambiguous: false }],
  ] as const)(
    'an order stays as it is, with charged %s, if there is no API key',
    async (charged, changes) => {
      const place = placeWith([CREATED], { credentials: rotating(fails) })
      await leave(place, 'r1', changes)
      const error = { code: 'configuration', charged, externalOrderId: 'r1' }
      expect(await recovered(place)).toMatchObject([{ outcome: 'still_open', error }])
    },
  )

  it.each<[string, readonly AttemptResult[], number]>([
    ['timeouts and lost connections', [TIMED_OUT, LOST, TIMED_OUT, CREATED], 3],
    ['failures around an order', [LOST, LOST, CREATED, LOST, LOST, LOST, CREATED], 6],
    ['failures around an error status', [LOST, LOST, answer(503), LOST, LOST, LOST, CREATED], 6],
    ['failures around a refusal', [LOST, LOST, problem(402), LOST, LOST, LOST, CREATED], 6],
  ])(
    'three transport failures in a row end the run, and the rest stays open: %s',
    async (_what, results, sent) => {
      const place = placeWith(results)
      for (const index of results.keys())
        await leave(place, `r${index}`, { firstSentAt: NOW - MINUTE + index })
      const outcomes = await recovered(place)
      expect(place.asked).toHaveLength(sent)
      expect(outcomes).toHaveLength(results.length)
      expect(outcomes.at(-1)).toMatchObject({ outcome: 'still_open' })
    },
  )
})

it.each<[string, AttemptResult, object]>([
  ['created', CREATED, { ok: true, charged: 'yes', orderId: 'o1' }],
  [
    'created',
    answer(201, { ...ORDER, amount: 1.5 }),
    { ok: false, charged: 'yes', orderId: 'o1', code: 'invalid_response' },
  ],
  ['needs_attention', problem(402), { ok: false, charged: 'unknown' }],
  ['still_open', LOST, { ok: false, charged: 'unknown', code: 'connection' }],
])('hooks get the outcome %s of an order that recovery has sent', async (recovery, result, expected) => {
  const place = placeWith([result])
  await leave(place, 'r1')
  await recovered(place)
  const call = { operation: 'orders.recover', method: 'POST', path: '/v1/orders', externalOrderId: 'r1' }
  expect(place.settled).toMatchObject([{ ...call, recovery, ...expected }])
})

describe('the order as the caller’s own schema reads it', () => {
  it("the caller's schema replaces the order", async () => {
    const own = { ...ORDER, status: 'as the schema reads it' }
    const place = placeWith([CREATED], { context: { parse: () => ({ value: own }) } })
    await leave(place, 'r1')
    expect(await recovered(place)).toMatchObject([{ outcome: 'created', order: own }])
  })

  it('an order that the schema rejects is unreadable, and a schema that throws ends the run', async () => {
    const issues = [{ path: 'status', message: 'is wrong' }]
    const rejecting = placeWith([CREATED], { context: { parse: () => ({ issues }) } })
    await leave(rejecting, 'r1')
    expect(await recovered(rejecting)).toMatchObject([
      {
        outcome: 'created',
        reason: 'unreadable',
        error: { code: 'invalid_response', charged: 'yes', orderId: 'o1', externalOrderId: 'r1', issues },
      },
    ])
    const bug = new TypeError('a bug')
    const throwing = placeWith([CREATED], { context: { parse: () => Promise.reject(bug) } })
    await leave(throwing, 'r1')
    expect(await errorOf(recovered(throwing))).toBe(bug)
  })
})
