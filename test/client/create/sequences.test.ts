import { describe, expect } from 'vitest'
import type { ApiKey } from '../../../src/options.ts'
import { all, throwing } from '../../support/calls.ts'
import {
  buys,
  type Call,
  drain,
  fails,
  fault,
  histories,
  IN_DOUBT,
  it,
  jump,
  LOSES_RESPONSE,
  passes,
  REFUSED,
  recorded,
  recovers,
  type Step,
  sameRequest,
  sent,
  times,
  topUp,
  wipe,
} from '../../support/history.ts'
import {
  anonymousOrder,
  failure,
  type Lab,
  type LabProcess,
  order,
  type Told,
  told,
} from '../../support/lab.ts'
import { beforeUpdates, firstWriteLate, on, type StoreFault } from '../../support/stores.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const WINDOW = 20 * MINUTE

const ONCE = { maxRetries: 0 } as const
const ABORTED = { signal: AbortSignal.abort('now') } as const
const UNRESOLVED = { code: 'unresolved_order', ...IN_DOUBT } as const
/** The row is emptied, so that no abandoned write can open the order. */
const isEmpty: Step = async (lab) => {
  expect(await lab.row('ref:r1')).toBeDefined()
  expect(await lab.record('ref:r1')).toBeUndefined()
}
/** A client whose store has this fault. */
const over = (...plan: Parameters<typeof on>): Call => ({ by: (lab) => lab.elsewhere({}, on(...plan)) })
const nothingSent = sent()

/** A process that claims r1, has it charged, and dies before it receives the response. */
const diesAfterCharge: Step = async (lab) => {
  await lab.dies((orders) => orders.create(order('r1')))
  lab.sandbox.expectChargedOnce('r1')
}

/** A call whose write is abandoned and applied a minute later. */
const gaveUp = (write: 'insert' | 'update', error: object = { code: 'store', ...IN_DOUBT }): Step =>
  fails(error, { by: (lab) => lab.elsewhere({}, firstWriteLate(write)) })

const another = (lab: Lab) => lab.process().client

histories([
  [
    'a topped-up order is charged once by a service that remembers refusals, even with an empty store',
    // Without its store, the client learns only of the first key's refusal.
    [drain, fails(REFUSED), topUp, buys(), sent(0, 0, 1), wipe, fails(REFUSED), buys()],
    { keys: [0, 0, 1, 0, 0, 1], charges: 1, record: { state: 'created', generation: 1 } },
    { preset: 'remembers-refusals' },
  ],
])

describe('charged by one process that was killed, then refused with 402 for another', () => {
  const unknown = fails({ ...REFUSED, ...IN_DOUBT, attempts: 1 }, { by: another })
  histories([
    [
      'a 402 for a second process is reported as unknown and keeps the key, however often it is received',
      [
        ...[diesAfterCharge, jump(3 * MINUTE), ...times(4, unknown)],
        ...[recorded({ state: 'open', ambiguous: true, hold: 'refused' }), sameRequest],
        ...[topUp, buys({ by: another }), sameRequest],
      ],
      { charges: 1 },
      { preset: 'balance-before-key', balance: 2500 },
    ],
  ])
})

describe('two calls with one reference, one refused while the other is in flight', () => {
  /** A call that receives 402, and whose process is paused between request and response. */
  async function stoppedBeforeRefusal(lab: Lab): Promise<{ stopped: LabProcess; ending: Promise<Told> }> {
    lab.fault({ type: 'status', status: 402 })
    const stopped: LabProcess = lab.process({
      fetch: async (input, init) => {
        stopped.stop()
        return await lab.sandbox.fetch(input as string, init)
      },
    })
    const { ending } = await lab.begin(() => told(stopped.client.orders.create(order('r1'))))
    lab.runtime.jump(3 * MINUTE)
    return { stopped, ending }
  }

  it('a refused call reports an unknown charge if the other call took the order over meanwhile', async (lab) => {
    const { stopped, ending } = await stoppedBeforeRefusal(lab)
    lab.fault({ type: 'delay', ms: 3000, when: 'after' })
    const { ending: inFlight } = await lab.begin(() => told(another(lab).orders.create(order('r1'))))
    expect(lab.posts.map(({ status }) => status)).toEqual([402, 'running'])
    stopped.wake()
    expect((await ending).error).toMatchObject({ ...REFUSED, ...IN_DOUBT, attempts: 1 })
    expect((await inFlight).order?.id).toBe(lab.charged())
    sameRequest(lab)
    lab.sandbox.expectCharges(1)
  })

  it('a refused call returns the order if the other call has placed it meanwhile', async (lab) => {
    const { stopped, ending } = await stoppedBeforeRefusal(lab)
    const placed = await another(lab).orders.create(order('r1'))
    stopped.wake()
    const late = await ending
    expect(late.order?.id).toBe(placed.id)
    expect(late.info).toMatchObject({ replayed: true })
    lab.sandbox.expectCharges(1)
  })
})

it('a call whose own 201 is unreadable returns the order that another call has stored meanwhile', async (lab) => {
  lab.fault({ type: 'cutBody' }, 1, 'createOrder')
  const slow: LabProcess = lab.process({
    maxRetries: 0,
    fetch: async (...request) => {
      slow.stop()
      return await lab.sandbox.fetch(...request)
    },
  })
  const { ending } = await lab.begin(() => told(slow.client.orders.create(order('r1'))))
  lab.runtime.jump(3 * MINUTE)
  const placed = await another(lab).orders.create(order('r1'))
  slow.wake()
  expect((await ending).order?.id).toBe(placed.id)
})

it('an order whose record has another order by now is returned as not remembered, with its own key', async (lab) => {
  const slow = lab.process()
  lab.fault({ type: 'delay', ms: 1000, when: 'after' })
  const { ending } = await lab.begin(() => told(slow.client.orders.create(order('r1'))))
  slow.stop()
  lab.runtime.jump(8 * MINUTE)
  await another(lab).orders.resolve({ externalOrderId: 'r1' }, { as: 'abandoned' })
  const later = await another(lab).orders.create(order('r1'))
  slow.wake()
  const { order: placed, info } = await ending
  expect(placed?.id).not.toBe(later.id)
  expect(info?.idempotencyKey).toBe(lab.posts[0]?.key)
  expect(lab.settled.at(-1)).toMatchObject({ orderId: placed?.id, remembered: false })
  expect(await lab.record('ref:r1')).toMatchObject({ order: { id: later.id } })
})

it.each<[how: string, meanwhile: Step[], told: object, posts: number, record: object]>([
  [
    'closes the order if no other process took it',
    [],
    { error: { charged: 'no', attempts: 0 } },
    0,
    { state: 'rejected', rejection: { kind: 'cancelled' } },
  ],
  [
    'returns the order if another process placed it meanwhile',
    [jump(5 * MINUTE), buys({ by: another })],
    { info: { attempts: 0, replayed: true } },
    1,
    { state: 'created' },
  ],
  [
    'reports an unknown charge if another process took the order and does not know',
    [jump(5 * MINUTE), LOSES_RESPONSE, fails(IN_DOUBT, { by: (lab) => lab.elsewhere({ maxRetries: 0 }) })],
    { error: { charged: 'unknown', attempts: 0 } },
    1,
    { state: 'open' },
  ],
])(
  'a process resumed after the window sends nothing and %s',
  async (lab, _how, meanwhile, ending, posts, record) => {
    const insert = lab.rows.insert.bind(lab.rows)
    const process = lab.process()
    // The process is paused from the moment when its claim is stored.
    lab.rows.insert = async (row) => {
      lab.rows.insert = insert
      const result = await insert(row)
      process.stop()
      return result
    }
    const { ending: woken } = await lab.begin(() => told(process.client.orders.create(order('r1'))))
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'open', ambiguous: false })
    for (const step of meanwhile) await step(lab)
    lab.runtime.jump(WINDOW)
    // The service has forgotten the key: sending it now would buy again.
    lab.sandbox.forgetKeys()
    process.wake()
    const result = await woken
    expect(result).toMatchObject(ending)
    if (result.order !== undefined) expect(result.order.id).toBe(lab.charged())
    expect(lab.posts).toHaveLength(posts)
    expect(await lab.record('ref:r1')).toMatchObject(record)
    lab.sandbox.expectCharges(posts)
  },
)

it('a resumed process does not retry after its total time', async (lab) => {
  lab.fault({ type: 'status', status: 503 }, 'always')
  const { ending } = await lab.begin(() => told(lab.create()))
  // The monotonic clock of a sleeping machine stands still.
  lab.runtime.jump(HOUR)
  expect((await ending).error).toMatchObject({ code: 'server', charged: 'unknown', attempts: 1 })
  expect(lab.posts).toHaveLength(1)
})

it.each<[how: string, fault: StoreFault, charged: 'no' | 'unknown', next: Step[]]>([
  [
    'not charged if the write was applied: the record is closed before the call ends',
    'answers_late',
    'no',
    [recorded({ state: 'rejected', rejection: { kind: 'cancelled' } }), nothingSent],
  ],
  [
    'unknown if the write may be applied later: it arrives after a minute, and recovery continues it',
    'done_late',
    'unknown',
    [passes(61_000), recorded({ state: 'open' }), nothingSent, jump(3 * MINUTE), buys(), sent(0)],
  ],
  [
    'not charged if the write was rejected and the row was emptied instead',
    'rejects_done_late',
    'no',
    [passes(2 * MINUTE), isEmpty, nothingSent],
  ],
])('an abort during the first write is reported as %s', async (lab, _how, storeFault, charged, next) => {
  const controller = new AbortController()
  const client = lab.elsewhere({}, (operation, count) => {
    if (operation !== 'insert') return undefined
    controller.abort('enough')
    return storeFault === 'rejects_done_late' && count > 1 ? undefined : storeFault
  })
  const error = await failure(client.orders.create(order('r1'), { signal: controller.signal }))
  expect(error).toMatchObject({ code: 'aborted', charged, attempts: 0, cause: 'enough' })
  for (const step of next) await step(lab)
  if (charged === 'unknown') expect(lab.posts[0]?.key).toBe(error.idempotencyKey)
})

histories([
  [
    'an abort before any send is reported as not charged, and leaves an emptied row',
    [
      fails({ code: 'aborted', charged: 'no', attempts: 0, cause: 'now' }, ABORTED),
      ...[isEmpty, nothingSent, buys()],
    ],
    { charges: 1 },
  ],
  [
    'an abort is reported as charged if an earlier call bought the order',
    [buys(), fails({ code: 'aborted', charged: 'yes' }, ABORTED)],
    { charges: 1, record: { state: 'created' } },
  ],
  [
    'an abort is reported as unknown if no closed record can replace a pending write',
    [fails({ code: 'aborted', ...IN_DOUBT, attempts: 0 }, { ...over('insert', 'rejects'), ...ABORTED })],
    { keys: [] },
  ],
  [
    "an abort's result stays true if the record is forgotten later and old records are removed",
    [
      ...[gaveUp('insert'), fails({ charged: 'no' }, ABORTED)],
      (lab) => lab.orders.forget({ externalOrderId: 'r1' }),
      ...[recovers(), passes(2 * MINUTE), recovers()],
    ],
    { keys: [] },
  ],
  [
    'an abort of a refused order is reported as not charged, and a late claim does not reopen it',
    [
      ...[drain, fails(REFUSED), topUp, gaveUp('update')],
      ...[fails({ code: 'aborted', charged: 'no' }, ABORTED), passes(2 * MINUTE)],
    ],
    { keys: [0], record: { state: 'rejected', rejection: { kind: 'refused' } } },
  ],
])

it.each<[when: string, apiKey: (stop: () => void) => ApiKey]>([
  ['before it began', (stop) => [stop(), 'sk_live_1'][1] ?? ''],
  ['while the API key is asked for', (stop) => () => new Promise(() => stop())],
  ['for want of an API key', () => throwing('the vault is sealed')],
])(
  'a call that ends %s is not followed by a charge from an abandoned write',
  async (lab, _when, apiKeyOf) => {
    await gaveUp('insert')(lab)
    const controller = new AbortController()
    const client = lab.elsewhere({ apiKey: apiKeyOf(() => controller.abort()) })
    const error = await failure(client.orders.create(order('r1'), { signal: controller.signal }))
    expect(error).toMatchObject({ code: expect.stringMatching(/^(aborted|configuration)$/), charged: 'no' })
    await lab.runtime.advance(2 * MINUTE)
    expect(await lab.record('ref:r1')).toBeUndefined()
    expect(await all(lab.orders.recover())).toEqual([])
    expect(lab.posts).toHaveLength(0)
  },
)

it('an abort is not reported for the previous order in the slot of an anonymous order', async (lab) => {
  const first = await lab.create(anonymousOrder())
  for (const error of [
    await failure(lab.create(anonymousOrder(), ABORTED)),
    await failure(lab.client({ apiKey: throwing('sealed') }).orders.create(anonymousOrder())),
  ]) {
    expect(error).toMatchObject({ charged: 'no', attempts: 0 })
    expect(error).not.toHaveProperty('idempotencyKey', expect.anything())
  }
  const second = await lab.create(anonymousOrder())
  expect(second.id).not.toBe(first.id)
  const known = await all(lab.orders.remembered({ since: 0 }))
  expect(known.map(({ order }) => order?.id)).toEqual([second.id])
})

it('a call out of time checks for writes of other calls before it reports charged no', async (lab) => {
  await lab.refused()
  // Two other calls are faster: one is refused, the other is charged without receiving the response.
  const store = beforeUpdates(lab.rows, async (count) => {
    if (count === 1) {
      lab.drain()
      await failure(lab.elsewhere().orders.create(order('r1')))
      lab.topUp()
    }
    if (count === 2) {
      lab.fault({ type: 'stall', commit: true })
      failure(lab.elsewhere().orders.create(order('r1'))).catch(() => {})
      await new Promise<void>((resolve) => void lab.runtime.setTimer(resolve, 100))
    }
  })
  const error = await failure(lab.client({ store }).orders.create(order('r1'), { totalTimeout: 120 }))
  expect(error).toMatchObject({ code: 'timeout', charged: 'unknown' })
  lab.sandbox.expectChargedOnce('r1')
})

it.each([
  [
    'is reported as unknown, and recovery does not repeat the stopped order',
    { type: 'stall', commit: true },
    1,
    'unknown',
    { state: 'open', ambiguous: true, hold: 'aborted' },
  ],
  [
    'is reported as not charged between two clean refusals',
    { type: 'status', status: 429, headers: { 'retry-after': '60' } },
    'always',
    'no',
    { state: 'rejected', rejection: { kind: 'not_processed' } },
  ],
] as const)('an abort after a send %s', async (lab, _title, action, count, charged, record) => {
  const controller = new AbortController()
  lab.fault(action, count)
  const { ending } = await lab.begin(() => failure(lab.create(order('r1'), { signal: controller.signal })))
  controller.abort('enough')
  expect(await ending).toMatchObject({ code: 'aborted', charged, attempts: 1, cause: 'enough' })
  expect(await lab.record('ref:r1')).toMatchObject(record)
  lab.sandbox.faults.clear()
  await buys()(lab)
})

histories([
  ...(['throws', 'rejects', 'hangs', 'done_late', 'loses'] as const).map(
    (storeFault) =>
      [
        `a refusal is reported as unknown if the record still says open: the store ${storeFault}`,
        [
          drain,
          fails({ ...REFUSED, ...IN_DOUBT, attempts: 1 }, over('update', storeFault)),
          ...[recorded({ state: 'open' }), topUp, jump(3 * MINUTE), buys(), sameRequest],
        ],
        { charges: 1 },
      ] as const,
  ),
  ...(['loses_answer', 'done_unanswered', 'answers_late'] as const).map(
    (storeFault) =>
      [
        `a refusal is reported as not charged if reading back shows it was written: the store ${storeFault}`,
        [drain, fails(REFUSED, over('update', storeFault))],
        { record: { state: 'rejected' } },
      ] as const,
  ),
])

describe('a 201 that is unreadable', () => {
  const CHARGED = { code: 'invalid_response', charged: 'yes', status: 201 } as const
  histories([
    [
      'an order whose 201 is unreadable three times is charged, remembered, and not requested a fourth time',
      [fault({ type: 'cutBody' }, 'always'), fails({ ...CHARGED, attempts: 3 })],
      { charges: 1, record: { state: 'created', readable: false, body: expect.any(String) } },
    ],
    ...(
      [
        ['402', { type: 'status', status: 402 }],
        ['401', { type: 'status', status: 401 }],
        ['409', { type: 'status', status: 409, code: 'IDEMPOTENCY_CONFLICT' }],
        ['in progress', { type: 'inProgress' }],
        ['500', { type: 'status', status: 500 }],
        ['a reset', { type: 'drop' }],
        ['a page', { type: 'bytes', body: '<html>', status: 200 }],
      ] as const
    ).map(
      ([what, action]) =>
        [
          `an order with an unreadable 201 is charged, whatever the service responds to a repetition: ${what}`,
          [...[fault({ type: 'cutBody' }), fault(action, 'always')], fails(CHARGED)],
          { record: { state: 'created' } },
        ] as const,
    ),
  ])

  it('a call repeats the key if another call got an unreadable 201 between its read and its claim', async (lab) => {
    lab.fault({ type: 'drop' })
    await failure(lab.client(ONCE).orders.create(order('r1')))
    const store = beforeUpdates(lab.rows, async (count) => {
      if (count > 1) return
      lab.fault({ type: 'cutBody' }, 3)
      const error = await failure(lab.elsewhere().orders.create(order('r1')))
      expect(error).toMatchObject({ charged: 'yes', attempts: 3 })
    })
    await buys({ by: { store } })(lab)
  })

  it('an order with an unreadable 201 is charged even if the call that repeats it has no time to send', async (lab) => {
    lab.fault({ type: 'cutBody' }, 3)
    await failure(lab.create())
    const client = lab.elsewhere({ totalTimeout: 1900 }, on('update', 'answers_late', 1))
    expect(await failure(client.orders.create(order('r1')))).toMatchObject({ charged: 'yes', attempts: 0 })
    lab.charged()
  })

  it('an order with an unreadable 201 is charged even if the caller stops reading it', async (lab) => {
    const controller = new AbortController()
    lab.fault({ type: 'stallBody' })
    const { ending } = await lab.begin(() => failure(lab.create(order('r1'), { signal: controller.signal })))
    controller.abort()
    expect(await ending).toMatchObject({ code: 'aborted', charged: 'yes' })
    expect(await lab.record('ref:r1')).toMatchObject({ state: 'created', readable: false })
  })
})

describe('in progress without end', () => {
  const CODE = { code: 'idempotency_in_progress', serverCode: 'IDEMPOTENCY_IN_PROGRESS' } as const
  const IN_PROGRESS = { ...CODE, ...IN_DOUBT, status: 409 } as const
  histories([
    [
      'an order in progress is unknown at the deadline, keeps its key, and the next call continues it',
      [
        ...[fault({ type: 'crash' }), ...times(3, fails(IN_PROGRESS)), sameRequest],
        recorded({ state: 'open', ambiguous: true }),
        async (lab) => expect(await lab.record('ref:r1')).not.toHaveProperty('busyUntil'),
        (lab) => lab.sandbox.configure({ orphanedMarkLifetime: 0 }),
        ...[buys(), sameRequest],
      ],
      { charges: 1 },
      { behaviour: { orphanedMarkLifetime: null } },
    ],
  ])

  it('a call stops polling an order in progress when the window ends, even if it has more time', async (lab) => {
    lab.fault({ type: 'inProgress' }, 'always')
    const client = lab.client({ safeRetryWindow: 120_000, totalTimeout: 300_000 })
    expect(await failure(client.orders.create(order('r1')))).toMatchObject(IN_PROGRESS)
    const at = lab.sandbox.requests.map((request) => request.at)
    // An attempt may take 30 seconds, and another machine's clock may be 30 seconds behind.
    expect(Math.max(...at) - Math.min(...at)).toBeLessThanOrEqual(60_000)
    expect(Math.max(...at) - Math.min(...at)).toBeGreaterThan(50_000)
  })

  it('an order in progress past the window needs recovery, and never gets another key', async (lab) => {
    lab.fault({ type: 'inProgress' }, 'always')
    let error = await failure(lab.create())
    while (error.code === 'idempotency_in_progress') error = await failure(lab.create())
    expect(error).toMatchObject(UNRESOLVED)
    sameRequest(lab)
  })
})

histories([
  [
    'a clock set back before the next call makes an open order count as past its window',
    [...[LOSES_RESPONSE, fails(IN_DOUBT, { by: ONCE }), jump(-HOUR)], fails({ ...UNRESOLVED, attempts: 0 })],
    { charges: 1 },
  ],
  [
    'a clock set back leaves no claim that looks alive',
    [diesAfterCharge, jump(-HOUR), fails(UNRESOLVED)],
    {},
  ],
  [
    'a clock set back changes nothing for a created or refused order',
    [
      ...[buys(), drain, fails(REFUSED, { request: order('r2') }), topUp, jump(-HOUR)],
      ...[buys(), buys({ request: order('r2') })],
      async (lab) => expect((await lab.row('ref:r1'))?.updatedAt).toBeGreaterThan(lab.runtime.now()),
    ],
    { charges: 2 },
  ],
])

it.each([
  ['a call', false, -HOUR],
  ['a call that continues an older order', true, -5 * MINUTE],
])('after the clock was set back during %s, nothing more is sent', async (lab, _what, older, back) => {
  lab.fault({ type: 'status', status: 503 }, 'always')
  if (older) await failure(lab.client(ONCE).orders.create(order('r1')))
  if (older) lab.runtime.jump(10 * MINUTE)
  const { ending } = await lab.begin(() => failure(lab.create()))
  lab.runtime.jump(back)
  expect(await ending).toMatchObject({ code: 'server', charged: 'unknown', attempts: 1 })
  expect(lab.posts).toHaveLength(older ? 2 : 1)
})
