import {
  InvalidRequestError,
  type OrderRecord,
  type RecoverOptions,
  type RecoveryOutcome,
} from 'customer-ordering-sdk'
import type { FaultAction } from 'customer-ordering-sdk/sandbox'
import { describe, expect, test } from 'vitest'
import type { CustomerOrderingClient } from '../../../src/client.ts'
import type { OrderStore } from '../../../src/stores/store.ts'
import { all, throwing } from '../../support/calls.ts'
import {
  buys,
  fails,
  fault,
  healed,
  histories,
  it,
  jump,
  recorded,
  type Step,
  sameRequest,
} from '../../support/history.ts'
import { anonymousOrder, failure, Lab, order, told } from '../../support/lab.ts'
import { REFUSED } from '../../support/statuses.ts'
import { faultyStore, on, storeOver } from '../../support/stores.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const BUSY = 2 * MINUTE
const WINDOW = 20 * MINUTE
const SILENT = { preset: 'minimal-answers' } as const

const outcomesOf = (found: readonly RecoveryOutcome[]): string[] =>
  found.map(({ outcome, record, reason }) =>
    [record.externalOrderId ?? record.slot.slice(0, 4), outcome, reason ?? ''].join(' ').trimEnd(),
  )

/** A process that claims an order and dies with its request in flight, charged or not. */
const leave = (lab: Lab, reference: string, how?: { readonly charged: boolean }): Promise<void> =>
  lab.dies((orders) => orders.create(order(reference)), how)
const left =
  (reference = 'r1', how?: { readonly charged: boolean }): Step =>
  (lab) =>
    leave(lab, reference, how)
/** Several orders left one after the other, longer ago than a call may take. */
const leftLongAgo = (...references: readonly string[]): Step[] => [
  ...references.flatMap((reference) => [left(reference), jump(10)]),
  jump(BUSY),
]

interface Run extends RecoverOptions {
  readonly by?: (lab: Lab) => CustomerOrderingClient
}
const run = (lab: Lab, { by = () => lab.client(), ...options }: Run = {}): Promise<RecoveryOutcome[]> =>
  all(by(lab).orders.recover(options))
/** Checks the outcomes of recover(): reference, outcome and reason. */
const tells =
  (lines: readonly string[], how?: Run): Step =>
  async (lab) =>
    expect(outcomesOf(await run(lab, how))).toEqual(lines)
/**
 * Checks the outcomes of recover() in detail. `{ id }` of a created order comes from the ledger.
 */
const finds =
  (outcomes: readonly object[], how?: Run): Step =>
  async (lab) =>
    expect(await run(lab, how)).toMatchObject(outcomes)
const findsCharged =
  (how?: Run): Step =>
  async (lab) =>
    expect(await run(lab, how)).toMatchObject([
      { outcome: 'created', order: { id: lab.charged() }, record: { state: 'created' } },
    ])
const sendsNone =
  (...steps: readonly Step[]): Step =>
  async (lab) => {
    const before = lab.posts.length
    for (const step of steps) await step(lab)
    expect(lab.posts.length).toBe(before)
  }
const elsewhere = (lab: Lab) => lab.process().client

const get = (lab: Lab) => lab.sandbox.requests.filter(({ method }) => method === 'GET')
const hangsFromTheSecondUpdate = on('update', 'hangs', (count) => count > 1)
const readsNone: Step = (lab) => expect(get(lab)).toEqual([])
/** A fault for every read of a list. */
const listed =
  (action: Parameters<Lab['fault']>[0], times: number | 'always' = 1): Step =>
  (lab) =>
    lab.fault(action, times, 'listOrders')

/** A create() that its caller aborts while the service processes it. */
const aborted =
  (commit: boolean): Step =>
  async (lab) => {
    const controller = new AbortController()
    lab.fault({ type: 'stall', commit })
    const { ending } = await lab.begin(() => told(lab.create(order('r1'), { signal: controller.signal })))
    controller.abort()
    expect((await ending).error).toMatchObject({ code: 'aborted', charged: 'unknown' })
  }

histories([
  [
    'recover() repeats the request of a dead process with its key and its bytes',
    [
      ...[left(), jump(BUSY), findsCharged(), sameRequest, recorded({ readable: true })],
      async (lab) => expect(await lab.record('ref:r1')).not.toHaveProperty('body'),
    ],
    { charges: 1 },
  ],
  [
    'recover() places an order that never reached the service',
    [left('r1', { charged: false }), jump(BUSY), tells(['r1 created'])],
    { charges: 1 },
  ],
  [
    'recover() sends one request for each order, whatever the response',
    [
      ...[left(), jump(BUSY), fault({ type: 'status', status: 503 }, 'always')],
      finds([{ outcome: 'still_open', error: { code: 'server', charged: 'unknown' } }]),
    ],
    { keys: [0, 0] },
  ],
])

it('recover() settles orders by key and orders without a name', async (lab) => {
  await lab.dies((orders) => orders.create(anonymousOrder(), { idempotencyKey: 'k1' }))
  await lab.dies((orders) => orders.create(anonymousOrder()))
  lab.runtime.jump(BUSY)
  expect(outcomesOf(await run(lab)).sort()).toEqual(['anon created', 'key: created'])
  lab.sandbox.expectChargedOnce('k1')
  lab.sandbox.expectCharges(2)
})

it("recover() sends the caller's headers with its requests and its reads", async (lab) => {
  for (const step of leftLongAgo('r1', 'r2')) await step(lab)
  const before = lab.sandbox.requests.length
  const headers = { 'x-trace': 'recovery-1' }
  lab.fault({ type: 'status', status: 503 })
  await run(lab, { headers })
  lab.runtime.jump(WINDOW)
  await run(lab, { headers })
  const sent = lab.sandbox.requests.slice(before)
  expect(new Set(sent.map(({ method }) => method))).toEqual(new Set(['POST', 'GET']))
  expect(new Set(sent.map((request) => request.headers['x-trace']))).toEqual(new Set(['recovery-1']))
})

histories([
  [
    "recover() skips a live call's order until that call's time is over, unless takeOver is set",
    [
      ...[left(), sendsNone(tells(['r1 in_progress'], { by: elsewhere }))],
      tells(['r1 created'], { by: elsewhere, takeOver: true }),
    ],
    { charges: 1 },
  ],
  [
    'recover() waits if the service is still processing the order',
    [
      ...[left(), jump(BUSY), fault({ type: 'inProgress' })],
      finds([{ outcome: 'in_progress', error: { code: 'idempotency_in_progress' } }]),
      tells(['r1 created']),
    ],
    { charges: 1 },
  ],
  [
    'recover() does not send if another process claims the order first',
    [
      ...[left(), jump(BUSY)],
      sendsNone(tells(['r1 in_progress'], { by: (lab) => lab.elsewhere({}, on('update', 'loses')) })),
    ],
    {},
  ],
])

it('recover() skips an order of its own process, even with takeOver', async (lab) => {
  const client = lab.client()
  lab.fault({ type: 'delay', ms: 5000, when: 'during' })
  const { ending } = await lab.begin(() => client.orders.create(order('r1')))
  await sendsNone(tells(['r1 in_progress'], { by: () => client, takeOver: true }))(lab)
  await ending
  lab.charged()
})

it('create() waits for the order that recover() is settling, or names the fields that differ', async (lab) => {
  await lab.doubted()
  const client = lab.client()
  lab.fault({ type: 'delay', ms: 1000 })
  const { ending } = await lab.begin(() => run(lab, { by: () => client }))
  const other = await failure(client.orders.create(order('r1', { quantity: 20 })))
  expect(other).toMatchObject({ code: 'idempotency_conflict', local: true, fields: ['quantity'] })
  const placed = await client.orders.create(order('r1'))
  expect(await ending).toMatchObject([{ outcome: 'created', order: { id: placed.id } }])
  expect(lab.posts).toHaveLength(2)
  lab.charged()
})

it('recover() reports the outcome of an order that was settled before its turn', async (lab) => {
  for (const step of leftLongAgo('r1', 'r2')) await step(lab)
  await leave(lab, 'r3', { charged: false })
  // No call may still be running, under any clock that is wrong by five minutes.
  lab.runtime.jump(BUSY + 6 * 60_000)
  const found: string[] = []
  for await (const outcome of lab.process().client.orders.recover({ concurrency: 1 })) {
    found.push(...outcomesOf([outcome]))
    if (outcome.record.externalOrderId !== 'r1') continue
    await lab.orders.resolve({ externalOrderId: 'r3' }, { as: 'abandoned' })
    await lab.create(order('r2'))
  }
  expect(found).toEqual(['r1 created', 'r2 created', 'r3 rejected'])
  lab.sandbox.expectCharges(2)
})

describe('recover() past the point where repeating is safe only looks', () => {
  const PAST = ['r1 needs_attention past_window']
  const UNCHARGED = { charged: false }
  const stillOpen = (action: Parameters<Lab['fault']>[0]): Step[] => [
    listed(action, 'always'),
    async (lab) => {
      const [outcome] = await run(lab)
      expect(outcome).toMatchObject({ outcome: 'still_open', error: { charged: 'unknown' } })
      expect(outcome).not.toHaveProperty('reason')
    },
    healed,
  ]
  histories([
    [
      'recover() finds an order past the window in the list, by its reference, and remembers it',
      [left(), jump(WINDOW), sendsNone(findsCharged(), buys())],
      { charges: 1 },
    ],
    [
      'recover() finds an order in the list if the window of its key ends during the claim',
      [
        ...[left(), jump(WINDOW - MINUTE - 1)],
        sendsNone(findsCharged({ by: (lab) => lab.elsewhere({}, on('update', 'answers_late', 1)) })),
      ],
      { charges: 1 },
    ],
    [
      'recover() leaves an order open that two passes over the list do not find',
      [
        ...[left('r1', UNCHARGED), jump(WINDOW)],
        (lab) => lab.sandbox.addOrder({ metadata: { externalOrderId: 'r2' } }),
        tells(PAST),
        (lab) => {
          const begun = get(lab).filter(({ path }) => /[?&]offset=0(&|$)/.test(path))
          expect(begun.length).toBe(2)
        },
      ],
      { charges: 0, record: { state: 'open' } },
    ],
    [
      'recover() leaves an order open past the window if the service returns no references',
      [left(), jump(WINDOW), tells(PAST)],
      { record: { state: 'open' } },
      SILENT,
    ],
    [
      'recover() treats an order as past the window if the clock went back',
      [left('r1', UNCHARGED), jump(-HOUR), tells(PAST)],
      { keys: [0] },
    ],
    [
      'recover() reads the list a second time, because rows may move between pages',
      [left(), jump(WINDOW), listed({ type: 'mutateList', change: 'dropFirst' }), tells(['r1 created'])],
      { charges: 1 },
    ],
    [
      'recover() leaves an order open if the list is unavailable',
      [
        ...[left(), jump(WINDOW), ...stillOpen({ type: 'drop' })],
        ...stillOpen({ type: 'status', status: 503 }),
        ...stillOpen({ type: 'status', status: 429 }),
        ...stillOpen({ type: 'status', status: 408 }),
        ...stillOpen({ type: 'status', status: 425 }),
        ...stillOpen({ type: 'stall' }),
      ],
      { charges: 1 },
    ],
    [
      'recover() needs a person if the list must not be read, or is not a list',
      [
        ...[left(), jump(WINDOW), listed({ type: 'status', status: 403 })],
        finds([{ outcome: 'needs_attention', reason: 'past_window', error: { code: 'permission_denied' } }]),
        finds([{ outcome: 'needs_attention', reason: 'past_window', error: { code: 'invalid_response' } }], {
          by: (lab) => lab.client({ listEnvelope: throwing('not what I know') }),
        }),
      ],
      {},
    ],
  ])

  it('recover() reports each order that it could not look up because no API key was available', async (lab) => {
    for (const step of [left(), left('r2'), jump(WINDOW + BUSY)]) await step(lab)
    let asked = 0
    const apiKey = async (): Promise<string> => {
      if (++asked > 0) throw new Error('the vault is down')
      return lab.sandbox.apiKey
    }
    const found = await all(lab.client({ apiKey }).orders.recover())
    expect(found.map(({ record, error }) => [record.externalOrderId, error?.code])).toEqual([
      ['r1', 'configuration'],
      ['r2', 'configuration'],
    ])
  })

  it('recover() reports an order as settled if a person has settled it during the look-up', async () => {
    const lab = new Lab(SILENT)
    await lab.doubted()
    lab.runtime.jump(HOUR)
    const orderId = lab.charged()
    const fetch: typeof globalThis.fetch = async (...request) => {
      if ((await lab.record('ref:r1'))?.state === 'open')
        await lab.orders.resolve({ externalOrderId: 'r1' }, { as: 'created', orderId })
      return await lab.sandbox.fetch(...request)
    }
    expect(await run(lab, { by: () => lab.client({ fetch }) })).toMatchObject([{ outcome: 'created' }])
  })

  it('an abort, or a store that hangs, ends the reports of orders that were not found', async () => {
    for (const hangs of [false, true]) {
      const lab = new Lab(SILENT)
      for (let count = 0; count < 20; count++) await lab.doubted('drop', order(`r${count}`))
      lab.runtime.jump(HOUR)
      const controller = new AbortController()
      let down = false
      const client = lab.elsewhere({}, (operation) => (operation === 'get' && down ? 'hangs' : undefined))
      const found: RecoveryOutcome[] = []
      const before = lab.runtime.monotonic()
      const reading = (async () => {
        for await (const one of client.orders.recover({ signal: controller.signal })) {
          found.push(one)
          down = hangs
          if (!hangs) controller.abort('enough')
        }
      })()
      if (hangs) await reading
      else expect(await failure(reading)).toMatchObject({ code: 'aborted', cause: 'enough' })
      expect(found).toHaveLength(hangs ? 20 : 1)
      expect(lab.runtime.monotonic() - before).toBeLessThan(10_000)
    }
  })

  it('recover() does not look up an order without a reference', async (lab) => {
    await lab.dies((orders) => orders.create(anonymousOrder(), { idempotencyKey: 'k1' }))
    lab.runtime.jump(WINDOW)
    await tells(['key: needs_attention past_window'])(lab)
    readsNone(lab)
  })

  it('recover() accepts a row with an id as proof, even if its other fields are unreadable', async (lab) => {
    await leave(lab, 'r1')
    const id = lab.charged()
    lab.runtime.jump(WINDOW)
    const body = JSON.stringify([{ id, amount: 1.5, externalOrderId: 'r1' }])
    await listed({ type: 'bytes', body })(lab)
    const [outcome] = await run(lab)
    expect(outcome).toMatchObject({ outcome: 'created', record: { state: 'created', order: { id } } })
    expect(outcome).not.toHaveProperty('order')
    // With the known id, one GET reads the order.
    await findsCharged()(lab)
    expect(await lab.record('ref:r1')).toMatchObject({ readable: true })
  })

  it("recover() looks an order up after the caller's abort, and after a refusal that proved nothing", async () => {
    const lab = new Lab({ balance: 2500, preset: 'balance-before-key' })
    await aborted(false)(lab)
    lab.fault({ type: 'commitThenDrop' })
    const refused = await failure(lab.create(order('r2')))
    expect(refused).toMatchObject({ code: 'payment_required', charged: 'unknown' })
    const before = lab.posts.length
    // The charged order is in the list. The other one is missing, which proves nothing.
    expect(outcomesOf(await run(lab)).sort()).toEqual(['r1 needs_attention aborted', 'r2 created'])
    expect(lab.posts.length).toBe(before)
    lab.sandbox.expectCharges(1)
  })

  it('recover() looks an order up with another API key', async () => {
    const lab = new Lab({ ...SILENT, behaviour: { keyScope: 'customer' } })
    await leave(lab, 'r1')
    const apiKey = lab.sandbox.addApiKey({ customer: lab.sandbox.customerId })
    lab.runtime.jump(BUSY)
    const by = () => lab.client({ apiKey })
    await sendsNone(tells(['r1 needs_attention api_key_changed'], { by }))(lab)
    // Repeating is safe if the service scopes keys by customer.
    await tells(['r1 created'], { by: () => lab.client({ apiKey, idempotencyScope: 'customer' }) })(lab)
    lab.sandbox.expectCharges(1)
  })
})

it.each<[count: number, options: RecoverOptions, takes: number]>([
  [100, {}, 650],
  [6, { concurrency: 2 }, 150],
])('%i open orders at 50 ms each are settled in parallel: %j', async (lab, count, options, takes) => {
  for (let number = 0; number < count; number++) await lab.doubted('drop', order(`r${number}`))
  lab.fault({ type: 'delay', ms: 50, when: 'before' }, 'always', 'createOrder')
  const before = lab.runtime.monotonic()
  expect(await lab.orders.recover(options)).toMatchObject({ created: count })
  expect(lab.runtime.monotonic() - before).toBe(takes)
  expect(lab.settled.at(-1)).toMatchObject({ operation: 'orders.recover', durationMs: 50 })
  expect(() => lab.orders.recover({ concurrency: 0 })).toThrow(InvalidRequestError)
  lab.sandbox.expectCharges(count)
})

it.each<[string, FaultAction]>([
  ['lost connections', { type: 'drop' }],
  ['rate limits', { type: 'status', status: 429 }],
  ['rejected API keys', { type: 'status', status: 401 }],
])('three %s in a row end the walk, apart from the requests in progress', async (lab, _what, action) => {
  for (let count = 0; count < 30; count++) await lab.doubted('drop', order(`r${count}`))
  lab.fault(action, 'always')
  const before = lab.sandbox.requests.length
  expect(await lab.orders.recover()).toMatchObject({ stillOpen: 30 })
  expect(lab.sandbox.requests.length - before).toBeLessThanOrEqual(2 + 8)
})

it('orders whose requests always time out do not keep the next run from the others', async (lab) => {
  const references = ['b0', 'b1', 'b2', 'b3', 'g0', 'g1', 'g2', 'g3', 'g4', 'g5', 'g6', 'g7']
  for (const reference of references) await lab.doubted('drop', order(reference))
  const fetch: typeof globalThis.fetch = async (...request) => {
    const { signal } = new Request(...request)
    const isBad = (await new Request(...request).text()).includes('externalOrderId":"b')
    await new Promise<void>((resolve, reject) => {
      if (!isBad) lab.runtime.setTimer(resolve, 40)
      signal.addEventListener('abort', () => reject(signal.reason))
    })
    return await lab.sandbox.fetch(...request)
  }
  const { orders } = lab.client({ fetch })
  expect(await orders.recover({ concurrency: 4 })).toMatchObject({ created: 2, stillOpen: 10 })
  expect(await orders.recover({ concurrency: 4 })).toMatchObject({ created: 5, stillOpen: 5 })
})

it('leaving the loop cancels the requests in progress, and leaves no claim behind', async (lab) => {
  for (let count = 0; count < 4; count++) await lab.doubted('drop', order(`r${count}`))
  lab.fault({ type: 'stall' }, 3, 'createOrder')
  const seen: string[] = []
  for await (const { outcome } of lab.orders.recover({ timeout: 60_000 })) {
    seen.push(outcome)
    break
  }
  expect(seen).toEqual(['created'])
  const open = await all(lab.orders.unresolved())
  expect(open).toHaveLength(3)
  for (const record of open) expect(record).not.toHaveProperty('busyUntil')
})

histories([
  ...[...REFUSED, 409].map(
    (status) =>
      [
        `a refusal with status ${status} proves nothing, and the next recovery does not repeat the request`,
        [
          ...[left(), jump(BUSY)],
          fault({ type: 'status', status, ...(status === 409 && { code: 'IDEMPOTENCY_CONFLICT' }) }),
          finds([
            {
              outcome: 'needs_attention',
              reason: status === 409 ? 'conflict' : 'refused',
              error: { status },
            },
          ]),
          sendsNone(run),
        ],
        { record: { state: 'open', hold: status === 409 ? 'conflict' : 'refused', generation: 0 } },
        SILENT,
      ] as const,
  ),
  ...[401, 403, 429].map(
    (status) =>
      [
        `a refusal with status ${status} leaves the order open for the next recovery`,
        [
          ...[left(), jump(BUSY), fault({ type: 'status', status })],
          ...[finds([{ outcome: 'still_open', error: { status } }]), tells(['r1 created'])],
        ],
        { charges: 1 },
      ] as const,
  ),
])

describe('an order that was created but never readable', () => {
  const unreadable = (times = 3): Step[] => [
    fault({ type: 'cutBody', after: 0 }, times),
    fails({ charged: 'yes' }),
    recorded({ state: 'created', readable: false }),
  ]
  histories([
    [
      'an unreadable order is read by repeating the request inside the window',
      [
        ...[...unreadable(), findsCharged(), recorded({ readable: true })],
        async (lab) => expect(await all(lab.orders.unresolved())).toEqual([]),
      ],
      { charges: 1 },
    ],
    [
      'an order that is unreadable again stays created, with the reason in error',
      [
        ...unreadable(4),
        async (lab) => {
          const [outcome] = await run(lab)
          const told = { record: { state: 'created' }, error: { charged: 'yes' } }
          expect(outcome).toMatchObject({ outcome: 'created', ...told })
          expect(outcome).not.toHaveProperty('order')
        },
        tells(['r1 created']),
      ],
      { charges: 1 },
    ],
    [
      'an unreadable order is reported as charged even if the store does not accept the proof',
      [
        ...[left(), jump(BUSY), fault({ type: 'cutBody', after: 0 }, 'always')],
        finds([{ outcome: 'created', reason: 'unreadable', error: { charged: 'yes' } }], {
          by: (lab) => lab.elsewhere({}, hangsFromTheSecondUpdate),
        }),
      ],
      { record: { state: 'open' } },
    ],
    [
      'an unreadable order past the window is looked up in the list',
      [...unreadable(), jump(WINDOW), sendsNone(findsCharged())],
      { charges: 1 },
    ],
    [
      'an unreadable order past the window needs a person if the list shows no references',
      [...unreadable(), jump(WINDOW), tells(['r1 needs_attention past_window'])],
      { charges: 1 },
      SILENT,
    ],
  ])

  const spoil = (field: object) => ({
    type: 'transformBody' as const,
    transform: (body: unknown): unknown => ({ ...(body as object), ...field }),
  })
  const UNREADABLE = { outcome: 'created', reason: 'unreadable' } as const
  test.each<[how: string, meanwhile: (lab: Lab, id: string) => unknown, outcome: object, readable: boolean]>([
    [
      'an unreadable order past the window is read by its id, if known',
      () => {},
      { outcome: 'created', order: { amount: 2500 } },
      true,
    ],
    [
      'an unreadable order is created even if it cannot be read by its id',
      (lab, id) => lab.sandbox.removeOrder(id),
      { ...UNREADABLE, error: { code: 'not_found', charged: 'yes' } },
      false,
    ],
    [
      'an unreadable order is requested once, even if the service fails',
      (lab) => lab.fault({ type: 'status', status: 503 }, 'always', 'retrieveOrder'),
      { ...UNREADABLE, error: { code: 'server', charged: 'yes' } },
      false,
    ],
    [
      'an unreadable order is not replaced by another order in the response',
      (lab) => lab.fault(spoil({ id: 'ord_other' }), 1, 'retrieveOrder'),
      { ...UNREADABLE, error: { code: 'invalid_response' } },
      false,
    ],
  ])('%s', async (_how, meanwhile, outcome, readable) => {
    const lab = new Lab(SILENT)
    lab.fault(spoil({ amount: 1.5 }))
    const { orderId: id = '' } = await failure(lab.create())
    lab.runtime.jump(WINDOW)
    await meanwhile(lab, id)
    expect(await run(lab)).toMatchObject([{ ...outcome, record: { order: { id } } }])
    expect(get(lab).map(({ path }) => path)).toEqual([`/v1/orders/${id}`])
    expect(await lab.record('ref:r1')).toMatchObject({ order: { id }, readable })
  })
})

describe('the walk of recover()', () => {
  histories([
    [
      'after three transport failures, recover() reports orders that it did not look up as still open',
      [
        ...[left('old'), jump(WINDOW), ...leftLongAgo('r1', 'r2', 'r3'), fault({ type: 'drop' }, 'always')],
        async (lab) => expect(outcomesOf(await run(lab)).at(-1)).toBe('old still_open'),
        readsNone,
      ],
      {},
    ],
    [
      'recover() reports an order even if the store becomes unreadable afterwards',
      [
        ...leftLongAgo('r1'),
        async (lab) => {
          const later = lab.elsewhere({}, (operation, count) =>
            operation !== 'insert' && count > 1 ? 'rejects' : undefined,
          )
          const [outcome] = await run(lab, { by: () => later })
          expect(outcome).toMatchObject({ outcome: 'created', order: { id: lab.charged() } })
        },
      ],
      {},
    ],
  ])

  const [LOST, SLOW] = [{ type: 'drop' }, { type: 'stall' }] as const
  const FAILED = { type: 'status', status: 503 } as const
  it.each<[string, readonly (Parameters<Lab['fault']>[0] | undefined)[], number]>([
    ['timeouts and lost connections', [SLOW, LOST, SLOW, undefined], 3],
    ['failures around an order', [LOST, LOST, undefined, LOST, LOST, LOST, undefined], 6],
    ['failures around an error status', [LOST, LOST, FAILED, LOST, LOST, LOST, undefined], 6],
  ])('only three transport failures in a row end the run: %s', async (lab, _what, actions, sent) => {
    for (const step of leftLongAgo(...actions.map((_action, index) => `r${index}`))) await step(lab)
    const before = lab.posts.length
    const fetch: typeof globalThis.fetch = (...request) => {
      const action = actions[lab.posts.length - before]
      if (action !== undefined) lab.fault(action, 1, 'createOrder')
      return lab.sandbox.fetch(...request)
    }
    const found = await run(lab, { by: () => lab.client({ fetch }), concurrency: 1 })
    expect(lab.posts.length - before).toBe(sent)
    expect(found.at(-1)).toMatchObject({ outcome: 'still_open' })
    expect(found.at(-1)).not.toHaveProperty('error')
    expect(found).toHaveLength(actions.length)
  })

  it('recover() continues after a failure of one record', async (lab) => {
    for (const step of leftLongAgo('r1', 'r2')) await step(lab)
    const apiKeys = ['', lab.sandbox.apiKey]
    const apiKey = (): string => apiKeys.shift() ?? lab.sandbox.apiKey
    const found = await all(lab.client({ apiKey }).orders.recover())
    expect(found).toMatchObject([
      { outcome: 'still_open', error: { code: 'configuration' } },
      { outcome: 'created' },
    ])

    await run(lab)
    await leave(lab, 'r3')
    lab.runtime.jump(BUSY)
    const unwritable = lab.elsewhere({}, on('update', 'rejects'))
    const before = lab.posts.length
    expect(await all(unwritable.orders.recover())).toMatchObject([
      { outcome: 'still_open', error: { code: 'store' } },
    ])
    expect(lab.posts.length).toBe(before)
  })

  it('recover() continues after a row that has become unreadable since it was listed', async (lab) => {
    for (const step of leftLongAgo('r1', 'r2', 'r3')) await step(lab)
    const found: RecoveryOutcome[] = []
    for await (const outcome of lab.orders.recover({ concurrency: 1 })) {
      if (found.push(outcome) === 1) await lab.tamper('ref:r2', { layout: 2 })
    }
    expect(found.map(({ outcome, reason }) => reason ?? outcome)).toEqual([
      'created',
      'newer_version',
      'created',
    ])
  })

  it('recover() takes claims that the store does not confirm in time for no failure of the service', async (lab) => {
    for (const step of leftLongAgo('r1', 'r2', 'r3', 'r4')) await step(lab)
    const stuck = new Set<string>()
    const store: OrderStore = {
      ...faultyStore(lab.rows, lab.runtime),
      update: (row, version) =>
        stuck.size < 3 && stuck.size < stuck.add(row.id).size
          ? new Promise(() => {})
          : lab.rows.update(row, version),
    }
    const found = await run(lab, { by: () => lab.client({ store }), concurrency: 1, totalTimeout: 1_500 })
    expect(outcomesOf(found)).toEqual(['r1 still_open', 'r2 still_open', 'r3 still_open', 'r4 created'])
    expect(found[0]?.error).toMatchObject({ code: 'store', charged: 'unknown' })
  })

  it.each([
    ['aborted', undefined],
    ['timeout', new DOMException('', 'TimeoutError')],
  ])('%s: recover() ends within a second of its signal, even if the store hangs', async (lab, code, why) => {
    for (const step of leftLongAgo('r1')) await step(lab)
    const controller = new AbortController()
    const store: OrderStore = {
      ...faultyStore(lab.rows, lab.runtime),
      get: () => new Promise(() => {}),
    }
    const { ending } = await lab.begin(() =>
      failure(run(lab, { by: () => lab.client({ store }), signal: controller.signal })),
    )
    const abortedAt = lab.runtime.monotonic()
    controller.abort(why)
    expect(await ending).toMatchObject({ code })
    expect(lab.runtime.monotonic() - abortedAt).toBeLessThanOrEqual(1_000)
  })

  it('recover(), unresolved() and reconcile() fail if the store cannot be read, and send nothing', async (lab) => {
    const rows = faultyStore(lab.rows, lab.runtime)
    const answers: OrderStore['listOpen'][] = [
      () => Promise.reject(new Error('gone')),
      () => new Promise(() => {}),
      throwing('gone'),
    ]
    for (const listOpen of answers) {
      const client = lab.client({ store: { ...rows, listOpen, list: listOpen } })
      await expect(all(client.orders.recover())).rejects.toMatchObject({ code: 'store' })
      await expect(all(client.orders.unresolved())).rejects.toMatchObject({ code: 'store' })
      await expect(all(client.orders.reconcile())).rejects.toMatchObject({ code: 'store' })
      expect(lab.sandbox.requests).toEqual([])
    }
  })

  it('recover() reports unreadable records first', async (lab) => {
    for (const reference of ['r1', 'r2', 'r3', 'r4']) await leave(lab, reference)
    lab.runtime.jump(BUSY)
    await lab.tamper('ref:r1', { layout: 2 })
    await lab.tamper('ref:r2', (content) => {
      delete content['key']
    })
    await lab.tamper('ref:r3', (content) => {
      content['body'] = String(content['body']).replace('"quantity":10', '"quantity":20')
    })
    const found = await run(lab)
    expect(outcomesOf(found).slice(0, 3).sort()).toEqual([
      'row: needs_attention corrupt',
      'row: needs_attention corrupt',
      'row: needs_attention newer_version',
    ])
    expect(outcomesOf(found).slice(3)).toEqual(['r4 created'])
    expect(lab.posts.filter(({ body }) => body.includes('"quantity":20'))).toEqual([])
  })

  it('an abort ends recover(), and is no evidence about the order in progress', async (lab) => {
    await leave(lab, 'r1', { charged: false })
    lab.runtime.jump(10)
    await leave(lab, 'r2')
    lab.runtime.jump(BUSY)
    const controller = new AbortController()
    lab.fault({ type: 'stall' })
    const found: string[] = []
    const { ending } = await lab.begin(async () => {
      for await (const outcome of lab.orders.recover({ signal: controller.signal, concurrency: 1 }))
        found.push(...outcomesOf([outcome]))
    })
    controller.abort()
    await expect(ending).rejects.toMatchObject({ code: 'aborted' })
    expect(found).toEqual(['r1 still_open'])
    expect(await lab.record('ref:r1')).not.toHaveProperty('hold')
    expect(outcomesOf(await run(lab)).sort()).toEqual(['r1 created', 'r2 created'])
  })
})

it('unresolved() lists open and unreadable orders, and sends nothing', async (lab) => {
  await lab.create(order('done'))
  await leave(lab, 'r1')
  const before = lab.sandbox.requests.length
  const found: OrderRecord[] = await all(lab.orders.unresolved())
  expect(found).toMatchObject([{ slot: 'ref:r1', externalOrderId: 'r1', state: 'open' }])
  expect(lab.sandbox.requests.length).toBe(before)
  expect(found[0]).not.toHaveProperty('body')
  expect(found[0]).not.toHaveProperty('apiKeyTag')
})

it.each<[string, (client: CustomerOrderingClient) => Promise<unknown>]>([
  ['recover()', (client) => all(client.orders.recover())],
  ['create()', (client) => failure(client.orders.create(order('r1')))],
])(
  'after a clock that was ahead is corrected, %s never reopens the window of the key',
  async (lab, _what, look) => {
    lab.sandbox.configure({ orderFields: [] })
    lab.runtime.jump(HOUR)
    await lab.doubted()
    lab.runtime.jump(-HOUR)
    const unmarked = lab.elsewhere({}, on('update', 'rejects'))
    expect(await run(lab, { by: () => unmarked })).toMatchObject([{ reason: 'past_window' }])
    await look(lab.client())
    lab.sandbox.forgetKeys()
    // According to the record, the order was sent five minutes ago.
    lab.runtime.jump(HOUR + 5 * 60_000)
    expect(await run(lab)).toMatchObject([
      { outcome: 'needs_attention', reason: 'past_window', record: { firstSentAt: 0 } },
    ])
    expect(await failure(lab.create())).toMatchObject({ code: 'unresolved_order' })
    expect(lab.posts).toHaveLength(1)
    lab.sandbox.expectCharges(1)
  },
)

it("a clock that was ahead does not reserve a killed call's order until it catches up", async (lab) => {
  const killed = lab.process()
  lab.runtime.jump(400 * 24 * HOUR)
  lab.fault({ type: 'stall' })
  await lab.begin(() => killed.client.orders.create(order('r1')))
  killed.kill()
  lab.runtime.jump(HOUR - 400 * 24 * HOUR)
  for (let run = 0; run < 2; run++)
    expect(await all(lab.elsewhere().orders.recover())).toMatchObject([
      { outcome: 'needs_attention', reason: 'past_window', record: { firstSentAt: 0 } },
    ])
  // The killed call had two minutes, and a clock may be wrong by five.
  lab.runtime.jump(8 * 60_000)
  const given = { as: 'abandoned' } as const
  expect(await lab.elsewhere().orders.resolve({ externalOrderId: 'r1' }, given)).toMatchObject({
    state: 'rejected',
  })
})

it('a clock that was ahead does not let the first key of a refused order be sent again', async (lab) => {
  lab.drain()
  lab.runtime.jump(HOUR)
  await failure(lab.create())
  lab.runtime.jump(-HOUR)
  await failure(lab.create())
  lab.runtime.jump(HOUR + 5 * 60_000)
  lab.topUp()
  await lab.create()
  expect(new Set(lab.posts.map(({ key }) => key)).size).toBe(3)
  lab.sandbox.expectCharges(1)
})

it('a lookup does not believe a list that comes from a cache', async (lab) => {
  await lab.doubted()
  lab.runtime.jump(HOUR)
  const fetch: typeof globalThis.fetch = async (...request) => {
    await lab.sandbox.fetch(...request)
    return new Response('[]', { headers: { age: '30', 'content-type': 'application/json' } })
  }
  const error = { code: 'invalid_response' }
  const { needsAttention } = await lab.client({ fetch }).orders.recover()
  expect(needsAttention).toMatchObject([{ reason: 'past_window', error }])
  lab.charged()
})

it('recovery does not report a nameless order that is settled meanwhile as uncharged', async (lab) => {
  const same = anonymousOrder()
  await lab.doubted('drop', same)
  let reads = 0
  const store = storeOver(lab.rows, {
    get: async (scope, id) => {
      if (++reads === 1) return await new Promise(() => {})
      if (reads === 2) await lab.create(same)
      if (reads === 3) await lab.doubted('drop', same)
      return await lab.rows.get(scope, id)
    },
  })
  const [outcome] = await all(lab.client({ store }).orders.recover({ totalTimeout: 1000 }))
  // The record is of the next order, and the error was about the one that was settled.
  expect(outcome).toMatchObject({ outcome: 'still_open', record: { key: lab.posts.at(-1)?.key } })
  expect(outcome).not.toHaveProperty('error')
  expect(lab.settled.at(-1)).toMatchObject({ recovery: 'still_open', charged: 'unknown' })
})
