/** Scenes about clocks, the end of the window, hasty persons and services that show other values. */
import type { SandboxBehaviour } from '../../../src/sandbox/service/behaviour.ts'
import type { Draw } from '../../support/seeds.ts'
import { withoutAmount } from './faults.ts'
import { LONGEST_FLIGHT, MINUTE } from './mishaps.ts'
import type { Action } from './plan.ts'
import {
  A_MINUTE,
  ANONYMOUS,
  AT_ONCE,
  CREATE,
  habit,
  KEY,
  LISTED,
  minutes,
  onOrders,
  PATIENT,
  PRICE,
  PROMPT,
  REFERENCE,
  SCENE,
  type Scene,
  type Scripted,
  SECOND,
  SEND_LOST,
  SOON,
  type Swarm,
  TOP_UP,
} from './scenes.ts'

export function drawHarderScene(draw: Draw): Swarm {
  const scene = draw.weighted(
    [endOfWindow, 4],
    [longCall, 2],
    [otherClock, 3],
    [hastyPerson, 3],
    [overtaken, 2],
    [hiddenCharge, 2],
    [twinOrders, 2],
    [otherValues, 2],
    [unreadOrder, 1],
    [readTwice, 1],
    [racedRefusal, 1],
    [sleepingClaim, 1],
  )
  return { ...SCENE, ...scene(draw), scene: scene.name }
}

/** Two clocks may differ by this much without a risk, and those of persons by more. */
const TOLERANCE = 29_000
const WRONG = 4.9 * MINUTE

const jump = (worker: number, by: number): Action => ({ kind: 'jump', worker, by })

/** The clocks of the first two workers, which differ by less than that. */
function clocks(draw: Draw, by: number): readonly Scripted[] {
  const ahead = draw.pick(0, draw.below(by), by)
  return [
    [AT_ONCE, jump(0, draw.chance(0.5) ? ahead - by : ahead)],
    [AT_ONCE, jump(1, draw.chance(0.5) ? ahead - by : ahead)],
  ]
}

/**
 * A service forgets each key when the window ends. Clocks differ as much as they may, and attempts
 * last until their timeout.
 */
const endOfWindow = (draw: Draw): Scene => {
  const safeRetryWindow = draw.pick(3, 5) * MINUTE
  const rest = safeRetryWindow / MINUTE
  const timeout = draw.pick(5000, 30_000)
  const again = (): Scripted => [
    minutes(draw.pick(0, rest / 2, rest - 1), rest),
    draw.pick('create', 'create', 'recover'),
  ]
  return {
    habits: [habit(['send'], draw.pick('lasts', 'unacknowledged'), draw.pick(0.5, 0.9))],
    balance: draw.pick(100_000, 100_000, 0),
    changes: 0,
    workers: 2,
    intents: [draw.pick(REFERENCE, KEY)],
    client: {
      safeRetryWindow,
      timeout,
      totalTimeout: draw.pick(20_000, 120_000, 3 * safeRetryWindow),
      maxRetries: draw.pick(0, 4, 10),
    },
    server: {
      ...PROMPT,
      keyLifetime: safeRetryWindow,
      keyLifetimeFrom: draw.pick('firstUse', 'remembered'),
    },
    script: [...clocks(draw, TOLERANCE), [AT_ONCE, { ...CREATE }], [SOON, TOP_UP], again(), again(), again()],
  }
}

/** A call polls an order in progress, or repeats it, until long after the window. */
const longCall = (draw: Draw): Scene => {
  const safeRetryWindow = draw.pick(2, 3) * MINUTE
  return {
    faults: [
      onOrders({
        times: draw.pick(10, 20, 30, 60),
        action: draw.pick(
          { type: 'inProgress', commit: true },
          { type: 'status', status: 503, commit: true },
        ),
      }),
    ],
    changes: 0,
    workers: 2,
    intents: [draw.pick(REFERENCE, KEY)],
    client: {
      safeRetryWindow,
      timeout: draw.pick(5000, 30_000),
      totalTimeout: draw.pick(5, 10) * MINUTE,
      maxRetries: draw.pick(4, 60),
    },
    server: { ...PROMPT, keyLifetime: safeRetryWindow },
    script: [
      ...clocks(draw, TOLERANCE),
      [AT_ONCE, { ...CREATE }],
      [A_MINUTE, draw.pick('create', 'recover')],
    ],
  }
}

/** A claim ends earlier or later by the clock of another process, which is minutes wrong. */
const otherClock = (draw: Draw): Scene => ({
  habits: [habit(['send'], draw.pick('lasts', 'slow', 'unacknowledged'), draw.pick(0.4, 0.8))],
  changes: 0,
  workers: 3,
  intents: [draw.pick(REFERENCE, KEY), SECOND],
  client: {
    ...PATIENT,
    timeout: draw.pick(5000, 30_000),
    totalTimeout: 120_000,
    maxRetries: draw.pick(0, 4),
  },
  server: { ...PROMPT, keyLifetime: 20 * MINUTE + WRONG + LONGEST_FLIGHT },
  script: [
    ...clocks(draw, draw.pick(MINUTE, 3 * MINUTE, WRONG)),
    [AT_ONCE, { ...CREATE, worker: draw.pick(0, 1) }],
    [draw.pick(SOON, A_MINUTE), draw.pick('create', 'recover'), draw.pick(0, 1, 2)],
    [draw.pick(SOON, A_MINUTE), draw.pick('create', 'recover'), draw.pick(0, 1, 2)],
    [minutes(1, 15), draw.pick('create', 'recover'), draw.pick(0, 1, 2)],
  ],
})

/** A person decides while a request is under way, perhaps by a clock that is minutes wrong. */
const hastyPerson = (draw: Draw): Scene => {
  const decides = (): Scripted => [
    draw.pick(AT_ONCE, SOON, A_MINUTE),
    { kind: 'resolve', worker: draw.pick(0, 1, 1, 2), intent: 0, hasty: true },
  ]
  return {
    habits: [habit(['send'], draw.pick('lasts', 'slow', 'slow answer'), draw.pick(0.5, 0.9))],
    rates: draw.chance(0.3) ? { crash: 0.02, store: 0, network: 0 } : SCENE.rates,
    changes: 0,
    workers: 3,
    intents: [draw.pick(REFERENCE, KEY)],
    client: {
      ...PATIENT,
      timeout: draw.pick(5000, 30_000),
      totalTimeout: draw.pick(20_000, 120_000),
      maxRetries: draw.pick(0, 0, 4),
    },
    server: { ...PROMPT, keyLifetime: 20 * MINUTE + WRONG + LONGEST_FLIGHT },
    script: [
      ...clocks(draw, draw.pick(0, MINUTE, 3 * MINUTE, WRONG, WRONG)),
      [AT_ONCE, { ...CREATE, worker: draw.pick(0, 0, 1) }],
      ...(draw.chance(0.5) ? [[A_MINUTE, draw.pick('create', 'recover'), 2] as const] : []),
      decides(),
      [draw.pick(AT_ONCE, SOON, A_MINUTE), draw.pick('create', 'create', 'recover')],
      decides(),
      [A_MINUTE, 'create'],
    ],
  }
}

/**
 * A fetch or a service worker repeats a request whose response was lost: a refusal hides a charge.
 * The service forgets the key when the window ends.
 */
const hiddenCharge = (draw: Draw): Scene => {
  const status = draw.pick(401, 402, 422, 425, 429)
  // A service that refuses a charged order again and again, whatever its key, breaks its own rule.
  const times = status === 402 || status === 422 ? 1 : draw.pick(1, 2, 4)
  // A list without references shows no charge, so the key must still be in its window.
  const orderFields = draw.pick<SandboxBehaviour['orderFields']>(LISTED.orderFields, LISTED.orderFields, [])
  const again = (): Scripted => [
    orderFields.length === 0 ? A_MINUTE : draw.pick<Scripted[0]>(A_MINUTE, minutes(8, 14), minutes(21, 30)),
    draw.pick('create', 'create', 'recover'),
  ]
  return {
    resends: true,
    habits: [habit(['send'], 'resent', draw.pick(0.3, 0.9))],
    faults: [onOrders({ skip: 1, times, action: { type: 'status', status, code: 'OTHER' } })],
    changes: 0,
    workers: 2,
    intents: [draw.pick(REFERENCE, { ...REFERENCE, idempotencyKey: 'key-1' })],
    client: { ...PATIENT, maxRetries: draw.pick(0, 4) },
    server: { ...LISTED, orderFields, keyLifetime: PATIENT.safeRetryWindow, keyFormat: 'any' },
    // Another note makes another body, so that the service reports a conflict.
    script: [[AT_ONCE, { ...CREATE, ...draw.pick({}, { note: 'first' }) }], again(), again(), again()],
  }
}

/** A recovery takes over the claim of a call that goes on sending, and a person decides meanwhile. */
const overtaken = (draw: Draw): Scene => {
  const decides: Scripted = [SOON, { kind: 'resolve', worker: 2, intent: 0, hasty: true }]
  return {
    habits: [habit(['send'], 'hangs', draw.pick(0.6, 0.8))],
    changes: 0,
    workers: 3,
    intents: [draw.pick(REFERENCE, KEY)],
    client: { ...PATIENT, totalTimeout: 120_000, maxRetries: 10 },
    server: PROMPT,
    script: [
      [AT_ONCE, { ...CREATE }],
      [SOON, { kind: 'recover', worker: 1, takeOver: true }],
      decides,
      decides,
      [A_MINUTE, 'create'],
    ],
  }
}

/**
 * Another integration orders the same with the same reference, for another target or from another
 * source system. A look-up for several systems reads the whole list.
 */
const twinOrders = (draw: Draw): Scene => {
  const unlike = draw.pick('target', 'sourceSystem')
  return {
    habits: [habit(['send'], draw.pick('failed', 'unacknowledged', 'crash after'), 0.8)],
    changes: 0,
    intents: [unlike === 'target' ? REFERENCE : { ...REFERENCE, sourceSystem: 'shop' }, SECOND],
    client: PATIENT,
    server: {
      ...LISTED,
      sourceSystemFrom: 'metadata',
      orderFields: [...LISTED.orderFields, 'target', 'sourceSystem'],
      ordering: draw.pick('newest', 'oldest'),
    },
    script: [
      [AT_ONCE, { kind: 'elsewhere', intent: 0, unlike }],
      [AT_ONCE, { ...CREATE }],
      ...(draw.chance(0.5) ? [[AT_ONCE, { ...CREATE, intent: 1 }] as const] : []),
      [minutes(21, 40), draw.pick('recover', 'resolve')],
      [SOON, draw.pick('recover', 'create')],
    ],
  }
}

/**
 * A service that shows a tidied target or the quantity that is left. The reference proves the order.
 */
const otherValues = (draw: Draw): Scene => ({
  habits: draw.chance(0.7) ? [SEND_LOST] : [],
  balance: draw.pick(100_000, PRICE),
  shows: draw.pick('tidied', 'counted'),
  changes: 0,
  workers: 2,
  intents: [REFERENCE],
  client: { ...PATIENT, maxRetries: draw.pick(0, 4) },
  server: {
    ...LISTED,
    orderFields: [...LISTED.orderFields, 'target'],
    ordering: draw.pick('newest', 'oldest'),
  },
  script: [
    [AT_ONCE, 'create'],
    [draw.pick<Scripted[0]>(A_MINUTE, minutes(21, 40)), draw.pick('recover', 'create')],
    [A_MINUTE, 'resolve'],
    [A_MINUTE, draw.pick('recover', 'create')],
  ],
})

/** A refused order is bought with a response that cannot be read, and its replays hear of a conflict. */
const unreadOrder = (draw: Draw): Scene => {
  const times = draw.pick(1, 2)
  return {
    faults: [
      onOrders({ skip: 1, times: 1, action: { type: 'cutBody', after: 5, cleanly: draw.chance(0.5) } }),
      onOrders({ skip: 1, times, action: { type: 'status', status: 409, code: 'IDEMPOTENCY_CONFLICT' } }),
    ],
    balance: 0,
    changes: 0,
    workers: 2,
    intents: [REFERENCE],
    client: { ...PATIENT, maxRetries: draw.pick(0, 4) },
    server: { ...PROMPT, rememberedRefusals: [] },
    script: [
      [AT_ONCE, { ...CREATE }],
      [A_MINUTE, TOP_UP],
      [SOON, 'create', draw.pick(0, 1)],
      [A_MINUTE, draw.pick('create', 'recover')],
    ],
  }
}

/** Several calls without a name read the same order by its id, because its response had a wrong amount. */
const readTwice = (draw: Draw): Scene => ({
  habits: [
    habit(draw.pick(['fetch'], ['update']), 'slow', draw.pick(0, 0.5)),
    habit(['update'], draw.pick('failed', 'late', 'slow answer'), draw.pick(0, 0.3)),
  ],
  faults: [onOrders({ times: 1, action: { type: 'transformBody', transform: withoutAmount } })],
  changes: 0,
  workers: 3,
  intents: [ANONYMOUS],
  client: PATIENT,
  server: PROMPT,
  script: [
    [AT_ONCE, { ...CREATE }],
    [A_MINUTE, 'create', 0],
    [AT_ONCE, draw.pick('create', 'create', 'recover'), 1],
    [draw.pick(AT_ONCE, A_MINUTE), 'create', 2],
  ],
})

/** A call reads its record so slowly that another process's call is refused meanwhile. */
const racedRefusal = (draw: Draw): Scene => ({
  habits: [habit(['get'], 'slow', 0.5)],
  balance: 0,
  changes: 0,
  workers: 2,
  intents: [REFERENCE],
  client: { ...PATIENT, maxRetries: 4 },
  server: { ...PROMPT, rememberedRefusals: draw.pick([], [402]) },
  script: [
    [AT_ONCE, { ...CREATE }],
    [SOON, 'create', 1],
    [SOON, 'create', 0],
    [A_MINUTE, TOP_UP],
    [SOON, 'create'],
  ],
})

/** A machine sleeps between its claim and its request. Meanwhile a person abandons the order, and it is bought again. */
const sleepingClaim = (): Scene => ({
  habits: [habit(['insert'], 'sleeps', 0.7)],
  changes: 0,
  workers: 3,
  intents: [REFERENCE],
  client: PATIENT,
  server: PROMPT,
  script: [
    [AT_ONCE, { ...CREATE }],
    [minutes(6, 9), { kind: 'resolve', worker: 1, intent: 0, hasty: true }],
    [SOON, 'create', 2],
  ],
})
