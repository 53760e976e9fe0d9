/**
 * Creates stored rows of every state and origin, and records what a client does with them. The
 * build of 2026-11-26 wrote the rows of `test/client/stored-rows/rows.json`. They never change,
 * because shops have such rows.
 */
import type {
  ClientOptions,
  CreateOptions,
  CreateOrderRequest,
  CustomerOrderingClient,
  StoredRow,
} from 'customer-ordering-sdk'
import type { FaultAction } from 'customer-ordering-sdk/sandbox'
import { all } from '../../support/calls.ts'
import { anonymousOrder, failure, Lab, order, told } from '../../support/lab.ts'

const MINUTE = 60_000
const SECOND_API_KEY = 'sk_second'

/** The order of a row, by its application's name for it. */
export interface Subject {
  readonly slot: 'ref:r1' | 'key:k1' | 'anonymous'
  readonly account: boolean
}

const NAMED: Subject = { slot: 'ref:r1', account: true }
const KEYED: Subject = { slot: 'key:k1', account: true }
const ANONYMOUS: Subject = { slot: 'anonymous', account: true }
const UNLABELLED: Subject = { slot: 'ref:r1', account: false }

/** The rows of an old build, and their time. */
export interface StoredRows {
  readonly subject: Subject
  /** Wall clock at the last write. */
  readonly now: number
  readonly rows: readonly StoredRow[]
}

const K1 = { idempotencyKey: 'k1' }
const NO_FUNDS = { type: 'status', status: 402, code: 'NO_FUNDS' } as const
const CONFLICT = {
  type: 'bytes',
  status: 409,
  body: '{"code":"IDEMPOTENCY_CONFLICT"}',
  commit: false,
} as const
const once = { maxRetries: 0 }

/** An act of the application, or an event, for the subject. */
type Step = (lab: Lab, subject: Subject) => Promise<unknown>
type Scene = readonly [what: string, subject: Subject, ...steps: Step[]]

const clientFor = (lab: Lab, { account }: Subject, options: ClientOptions = {}): CustomerOrderingClient =>
  account ? lab.client(options) : lab.unlabelled(options)

/**
 * Requests the order while the service has these faults, one for each request. The options are
 * those of the call.
 */
const asks =
  (faults: readonly FaultAction[] = [], client: ClientOptions = {}, options: CreateOptions = {}): Step =>
  async (lab, subject) => {
    for (const fault of faults) lab.fault(fault)
    const { orders } = clientFor(lab, subject, client)
    await told(orders.create(requestOf(subject.slot), { ...optionsOf(subject.slot), ...options }))
  }
/** Requests the order while every request has this fault. */
const asksWhile =
  (fault: FaultAction): Step =>
  async (lab) => {
    const end = lab.fault(fault, 'always')
    await failure(lab.create())
    end()
  }
const begins =
  (client: ClientOptions = {}): Step =>
  async (lab) => {
    const controller = new AbortController()
    const { orders } = lab.client(client)
    const { ending } = await lab.begin(() => orders.create(order('r1'), { signal: controller.signal }))
    controller.abort()
    await failure(ending)
  }
/** Places the order, and kills its process while the service is silent. */
const killed: Step = (lab, { slot }) =>
  lab.dies((orders) => orders.create(requestOf(slot), optionsOf(slot)), { charged: false })
const waits =
  (milliseconds: number): Step =>
  async (lab) =>
    lab.runtime.jump(milliseconds)

const created = asks()
const lost = asks([{ type: 'commitThenDrop' }], once)
const refused = asks([NO_FUNDS], once)
const conflicting = asks([CONFLICT], once)
/** The order is refused with its first key, and with the second key in the same call. */
const moved: readonly Step[] = [refused, asks([NO_FUNDS, NO_FUNDS])]
const unread = asksWhile({ type: 'cutBody' })
const abandoned: readonly Step[] = [
  waits(1),
  (lab, { slot }) => lab.orders.resolve(nameOf(slot), { as: 'abandoned' }),
]

/** Rows of every state, with their origin. */
export const SCENES: readonly Scene[] = [
  ['open, its response was lost', NAMED, lost],
  ['open, its response was lost, with a random key', UNLABELLED, lost],
  [
    "open, its response was lost, under the caller's key",
    NAMED,
    asks([{ type: 'commitThenDrop' }], once, K1),
  ],
  ['open, its response was lost, named by its key', KEYED, lost],
  ['open, its response was lost, without a name', ANONYMOUS, lost],
  [
    'open, its response was lost under its second key',
    NAMED,
    refused,
    asks([NO_FUNDS, { type: 'commitThenDrop' }], { maxRetries: 1 }),
  ],
  ['open, aborted by its caller', NAMED, async (lab) => void lab.fault({ type: 'stall' }), begins()],
  ['open, refused after doubt', NAMED, asks([{ type: 'drop' }, NO_FUNDS])],
  ['open, in conflict after doubt', NAMED, lost, conflicting],
  ['busy', NAMED, killed],
  ['busy, named by its key', KEYED, killed],
  ['busy, without a name', ANONYMOUS, killed],
  ['busy, continued after doubt', NAMED, lost, killed],
  ['created', NAMED, created],
  ['created, named by its key', KEYED, created],
  ['created, without a name', ANONYMOUS, created],
  ['created twice, without a name', ANONYMOUS, created, waits(MINUTE), created],
  ['created once and in doubt once, without a name', ANONYMOUS, created, waits(MINUTE), lost],
  ['created as a duplicate, without a name', ANONYMOUS, asks([], {}, { allowDuplicate: true })],
  ['created, of which only the id is kept', NAMED, asks([], { remember: 'id' })],
  ['created under its second key', NAMED, refused, asks([NO_FUNDS])],
  ['created, unreadable, its id unknown', NAMED, unread],
  ['created, unreadable, its id known', NAMED, asksWhile({ type: 'transformBody', patch: { status: null } })],
  ['created, unreadable, and busy', NAMED, unread, killed],
  ['refused', NAMED, refused],
  ['refused, with a random key', UNLABELLED, asks([NO_FUNDS])],
  ['refused, named by its key', KEYED, refused],
  ['refused, without a name', ANONYMOUS, refused],
  ['refused under two keys', NAMED, ...moved],
  ['not looked at', NAMED, asks([{ type: 'status', status: 401 }])],
  ['never sent', NAMED, asks([{ type: 'refuseConnection' }], once)],
  ['cancelled', NAMED, begins({ apiKey: () => new Promise<string>(() => {}) })],
  ['in conflict', NAMED, conflicting],
  ['in conflict, with a random key', UNLABELLED, asks([CONFLICT])],
  ['in conflict, named by its key', KEYED, conflicting],
  ['in conflict with what was refused', NAMED, refused, conflicting],
  ['abandoned', NAMED, lost, ...abandoned],
  ['abandoned, named by its key', KEYED, lost, ...abandoned],
  ['forgotten', NAMED, created, (lab, { slot }) => lab.orders.forget(nameOf(slot))],
  ['nothing', NAMED],
]

/** Runs one scene and returns its rows. */
export async function leave([, subject, ...steps]: Scene): Promise<StoredRows> {
  const lab = new Lab()
  for (const step of steps) await step(lab, subject)
  const { scope } = lab.place('', subject.account ? 'shop' : null)
  const { rows } = await lab.rows.list(scope, { limit: 100 })
  return { subject, now: lab.runtime.now(), rows }
}

/** When the client reads the rows, in milliseconds after the last write. */
const MOMENTS = { soon: 40_000, later: 5 * MINUTE, late: 60 * MINUTE, 'clock back': -60 * MINUTE } as const
type Moment = keyof typeof MOMENTS
const MOMENT_NAMES: readonly Moment[] = ['soon', 'later', 'late', 'clock back']

type Act = (lab: Lab, subject: Subject) => Promise<string>

/** Acts that use the order's name. */
const named =
  (call: (orders: CustomerOrderingClient['orders'], slot: Subject['slot']) => Promise<unknown>): Act =>
  async (lab, subject) =>
    subject.slot === 'anonymous' ? '-' : await saying(call(clientFor(lab, subject).orders, subject.slot))

/** Acts of the client, at a service that has bought nothing. */
const ACTS: Readonly<Record<string, Act>> = {
  create: (lab, subject) => create(lab, subject),
  'create, refused': (lab, subject) => {
    lab.fault(NO_FUNDS, 'always')
    return create(lab, subject)
  },
  'create, another payload': (lab, subject) => create(lab, subject, { quantity: 20 }),
  'create, another key': (lab, subject) => create(lab, subject, {}, { idempotencyKey: 'k0' }),
  'create, another API key': (lab, subject) => create(lab, subject, {}, {}, SECOND_API_KEY),
  recover: (lab, subject) => recover(lab, subject, {}),
  'recover, refused': (lab, subject) => {
    lab.fault(NO_FUNDS, 'always', 'createOrder')
    return recover(lab, subject, {})
  },
  'recover, taking over': (lab, subject) => recover(lab, subject, { takeOver: true }),
  abandon: named((orders, slot) => orders.resolve(nameOf(slot), { as: 'abandoned' })),
  forget: named((orders, slot) => orders.forget(nameOf(slot))),
}

/** The client's decisions for the rows, by act and by time. */
export type Decisions = Readonly<Record<string, Readonly<Record<string, string>>>>

/** Rows by their origin, with the decisions of a client that finds them. */
export type Fixture = Readonly<Record<string, StoredRows & { readonly decisions: Decisions }>>
export const FIXTURE: URL = new URL('rows.json', import.meta.url)

export async function decisionsOver(stored: StoredRows): Promise<Decisions> {
  const decisions: Record<string, Record<string, string>> = {}
  for (const [name, act] of Object.entries(ACTS)) {
    const moments = new Map<string, string[]>()
    for (const moment of MOMENT_NAMES) {
      const told = await decide(stored, moment, act)
      moments.set(told, [...(moments.get(told) ?? []), moment])
    }
    decisions[name] = Object.fromEntries([...moments].map(([told, at]) => [at.join(', '), told]))
  }
  return decisions
}

/** The result of a client that finds the rows, its requests, and the stored rows afterwards. */
async function decide({ subject, now, rows }: StoredRows, moment: Moment, act: Act): Promise<string> {
  const lab = new Lab()
  // Ids in the rows must not be generated again.
  for (let drawn = 0; drawn < 1000; drawn++) lab.runtime.randomId()
  lab.sandbox.addApiKey({ customer: lab.sandbox.customerId, secret: SECOND_API_KEY })
  for (const row of rows) await lab.rows.insert(row)
  lab.runtime.jump(now + MOMENTS[moment] - lab.runtime.now())
  const keys = rows.map(({ data }) => /"key":"([^"]*)"/.exec(data)?.[1])
  const says = await act(lab, subject)
  const sent = lab.posts.map(({ key }) => (keys.includes(key ?? '') ? 'its key' : `another key`))
  const stored = await stateOf(lab, subject)
  return `${says}; ${sent.length === 0 ? 'sends nothing' : `sends ${sent.join(', ')}`}; ${stored}`
}

async function create(
  lab: Lab,
  subject: Subject,
  changes: Partial<CreateOrderRequest> = {},
  options: CreateOptions = {},
  apiKey: string = lab.sandbox.apiKey,
): Promise<string> {
  const { orders } = clientFor(lab, subject, { apiKey })
  const request = { ...requestOf(subject.slot), ...changes }
  const { order, info, error } = await told(
    orders.create(request, { ...optionsOf(subject.slot), ...options }),
  )
  if (error !== undefined) return `${error.code}, charged ${error.charged}`
  return order === undefined ? '' : `returns${info?.replayed === true ? ' what there was' : ''}`
}

async function recover(
  lab: Lab,
  subject: Subject,
  options: { readonly takeOver?: boolean },
): Promise<string> {
  const outcomes = await all(clientFor(lab, subject).orders.recover(options))
  return (
    outcomes.map(({ outcome, reason }) => (reason ? `${outcome} (${reason})` : outcome)).join(', ') ||
    'nothing'
  )
}

async function saying(call: Promise<unknown>): Promise<string> {
  return await call.then(
    (value) => (typeof value === 'boolean' ? String(value) : 'done'),
    ({ code, charged }) => `${code}, charged ${charged}`,
  )
}

async function stateOf(lab: Lab, { slot, account }: Subject): Promise<string> {
  const name = slot === 'anonymous' ? undefined : slot
  const { scope, id } = lab.place(name ?? '', account ? 'shop' : null)
  const { rows } = await lab.rows.list(scope, { limit: 100 })
  const states = rows
    .filter((row) => (name === undefined ? row.data.includes('"slot":"anon:') : row.id === id))
    .map(({ data }) => {
      if (!data.startsWith('{')) return data
      const { state, generation, ambiguous, readable, rejection, hold, busyUntil } = JSON.parse(data)
      const facts = [
        ambiguous && 'ambiguous',
        state === 'created' && !readable && 'unreadable',
        rejection?.kind,
        hold && `hold ${hold}`,
        busyUntil && 'busy',
      ].filter(Boolean)
      return `${state}${generation ? ` (${generation})` : ''}${facts.length > 0 ? `: ${facts.join(', ')}` : ''}`
    })
  return states.join(' and ') || 'nothing stored'
}

const requestOf = (slot: Subject['slot']): CreateOrderRequest =>
  slot === 'ref:r1' ? order('r1') : anonymousOrder()
const optionsOf = (slot: Subject['slot']): CreateOptions => (slot === 'key:k1' ? K1 : {})
const nameOf = (slot: Subject['slot']) => (slot === 'ref:r1' ? { externalOrderId: 'r1' } : K1)
