import { expect } from 'vitest'
import { MemoryStore } from '../../../src/stores/memory.ts'
import { all } from '../../support/calls.ts'
import {
  abandons,
  buys,
  type Call,
  fails,
  fault,
  histories,
  IN_DOUBT,
  it,
  jump,
  recorded,
  type Step,
  sameRequest,
  times,
  wipe,
} from '../../support/history.ts'
import { anonymousOrder, failure, order } from '../../support/lab.ts'

const MINUTE = 60_000
const REMEMBERS = { preset: 'remembers-refusals' } as const
const CONFLICT = { code: 'idempotency_conflict', local: false, ...IN_DOUBT } as const
const REFUSED = { code: 'order_not_accepted', charged: 'no' } as const
const SHARED: Call = { by: (lab) => lab.shared() }
const OTHER: Call = { request: order('r1', { quantity: 20 }) }
const TOO_MANY: Call = { request: order('r1', { quantity: 5000 }) }

/** The service knows the key of r1 with another quantity. The store is empty. */
const foreign: readonly Step[] = [buys(OTHER), wipe]
const conflicts = fails(CONFLICT)
const refusedNow = fault({ type: 'status', status: 402 })
/** The service shows no references in its list, so the order cannot be looked up. */
const noReferences: Step = (lab) => lab.sandbox.configure({ orderFields: [] })
histories([
  [
    'a conflict is never retried and never leads to another key, because another payload may be bought',
    [
      ...[...foreign, fails({ ...CONFLICT, attempts: 1, status: 409, serverCode: 'IDEMPOTENCY_CONFLICT' })],
      recorded({ state: 'open', generation: 0, hold: 'conflict' }),
      ...times(3, conflicts),
    ],
    { keys: [0, 0, 0, 0, 0], charges: 1 },
  ],
  [
    'a conflict ends when the caller requests the payload that owns the key',
    [...foreign, conflicts, buys(OTHER)],
    { record: { state: 'created', generation: 0 } },
  ],
  [
    'after a conflict, no other payload is sent while a call that was taken over may still send its own',
    [
      (lab) => lab.dies((orders) => orders.create(order('r1')), { charged: false }),
      fault({ type: 'status', status: 409, code: 'IDEMPOTENCY_CONFLICT' }, 2),
      (lab) => all(lab.elsewhere().orders.recover({ takeOver: true })),
      fails({ ...CONFLICT, local: true, attempts: 0 }, OTHER),
      fails(CONFLICT, { request: order('r1', { metadata: { externalOrderId: 'r1', other: 1 } }) }),
      ...[sameRequest, jump(8 * MINUTE), buys(OTHER)],
    ],
    { keys: [0, 0, 0, 0], charges: 1 },
  ],
  [
    'after a conflict, a later refusal under the key does not prove that nothing was bought',
    [
      ...[...foreign, conflicts, refusedNow, fails({ code: 'payment_required', ...IN_DOUBT })],
      fails({ code: 'aborted', ...IN_DOUBT }, { signal: AbortSignal.abort() }),
    ],
    {},
  ],
  [
    'a refused order does not move to another key if its replay conflicts after an unreadable 201',
    [
      ...[refusedNow, fails({ charged: 'no' }, SHARED), fault({ type: 'cutBody' })],
      fault({ type: 'status', status: 409, code: 'IDEMPOTENCY_CONFLICT' }),
      fails({ code: 'invalid_response', charged: 'yes' }, SHARED),
      buys(SHARED),
    ],
    { keys: [0, 0, 0, 0], charges: 1 },
  ],
  [
    'a conflict does not accept a new key from the caller for this order',
    [
      ...[...foreign, conflicts],
      fails({ ...CONFLICT, local: true, attempts: 0 }, { idempotencyKey: 'mine' }),
    ],
    { charges: 1 },
  ],
  [
    'a conflict ends when a person abandons the order',
    [...foreign, conflicts, abandons(), (lab) => lab.create()],
    { keys: [0, 0, 1], charges: 2 },
  ],
  [
    'a call moves to another key if a shared store saw the other payload refused',
    [fails(REFUSED, { ...SHARED, ...TOO_MANY }), buys({ ...SHARED, info: { attempts: 2 } })],
    { keys: [0, 0, 1], record: { generation: 1, attempts: 3 } },
    REMEMBERS,
  ],
  [
    'a conflict without retries left reports charged no, and moves on once the key may be forgotten',
    [
      fails(REFUSED, { ...SHARED, ...TOO_MANY }),
      fails({ ...CONFLICT, charged: 'no' }, { by: (lab) => lab.shared({ maxRetries: 0 }) }),
      recorded({ state: 'rejected', generation: 0, rejection: { kind: 'refused', status: 409 } }),
      ...[jump(20 * MINUTE), buys({ by: (lab) => lab.shared({ maxRetries: 0 }) })],
    ],
    { charges: 1 },
    REMEMBERS,
  ],
  [
    'a conflict keeps its key if another process with its own store may have bought with it',
    [
      ...[fails(REFUSED, TOO_MANY), buys({ by: (lab) => lab.client({ store: new MemoryStore() }) })],
      fails(CONFLICT, OTHER),
      fails({}, OTHER),
    ],
    { keys: [0, 0, 0, 0], charges: 1 },
  ],
  [
    'a conflict on a random key moves on without a shared store, because no other process has the key',
    [fails(REFUSED, { by: (lab) => lab.unlabelled(), ...TOO_MANY }), buys({ by: (lab) => lab.unlabelled() })],
    { keys: [0, 0, 1], charges: 1 },
    REMEMBERS,
  ],
  [
    'a conflict is distinct from a refusal of the key after an attempt in doubt',
    [...foreign, fault({ type: 'drop' }), fails({ ...CONFLICT, attempts: 2 })],
    { record: { state: 'open', ambiguous: true, hold: 'conflict' } },
  ],
  [
    'after a conflict on an order without a reference, the same call continues it',
    [
      fault({ type: 'status', status: 409, code: 'IDEMPOTENCY_CONFLICT' }),
      fails(CONFLICT, { request: anonymousOrder() }),
      (lab) => lab.create(anonymousOrder()),
    ],
    { keys: [0, 0], charges: 1 },
  ],
  [
    'a 409 with another code is retried like a server error, and proves nothing',
    [
      fault({ type: 'status', status: 409, code: 'BUSY' }, 'always'),
      fails({ code: 'conflict', ...IN_DOUBT, attempts: 3, serverCode: 'BUSY' }, { by: { maxRetries: 2 } }),
    ],
    { record: { state: 'open', ambiguous: true } },
  ],
])

it('after a conflict, a clock that goes back does not send another payload than the caller wants', async (lab) => {
  await lab.dies((orders) => orders.create(order('r1')), { charged: false })
  lab.fault({ type: 'status', status: 409, code: 'IDEMPOTENCY_CONFLICT' })
  await all(lab.elsewhere().orders.recover({ takeOver: true }))
  lab.runtime.jump(7 * MINUTE + 2000)
  const apiKey = (): string => {
    lab.runtime.jump(-5000)
    return lab.sandbox.apiKey
  }
  await lab.client({ apiKey }).orders.create(order('r1', { quantity: 20 }))
  expect(lab.posts.at(-1)?.body).toContain('"quantity":20')
})

it('a conflict stays listed, is never removed, and is not bought again with its reference', async (lab) => {
  for (const step of [...foreign, noReferences]) await step(lab)
  const { orders } = lab
  await failure(orders.create(order('r1')))
  expect(await all(orders.unresolved())).toMatchObject([{ state: 'open', externalOrderId: 'r1' }])
  for (let week = 0; week < 2; week++) {
    lab.runtime.jump(8 * 24 * 60 * MINUTE)
    lab.sandbox.forgetKeys()
    const held = { outcome: 'needs_attention', reason: 'conflict', record: { state: 'open' } }
    expect(await all(lab.orders.recover())).toMatchObject([held])
    await lab.runtime.settle()
  }
  const unresolved = { code: 'unresolved_order', ...IN_DOUBT }
  expect(await failure(orders.create(order('r1')))).toMatchObject(unresolved)
  expect(await failure(orders.forget({ externalOrderId: 'r1' }))).toMatchObject(IN_DOUBT)
  lab.sandbox.expectCharges(1)
  await orders.resolve({ externalOrderId: 'r1' }, { as: 'abandoned' })
  expect(await all(orders.unresolved())).toEqual([])
})
