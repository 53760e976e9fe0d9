/**
 * How stored rows of every state and origin come to be, and what a client does that finds one. The rows of
 * `test/fixtures/stored-rows.json` were written by the build of 2026-11-23 and stay as they are: shops have such rows.
 */
import type { CreateOptions, CreateOrderRequest, StoredRow } from 'customer-ordering-sdk'
import { all } from '../../support/all.ts'
import { anonymousOrder, failure, Lab, order, told } from '../../support/lab.ts'

const MINUTE = 60_000
const SECOND_API_KEY = 'sk_second'

/** Which order a row stands for, as its application names it. */
export interface Subject {
  readonly slot: 'ref:r1' | 'key:k1' | 'anonymous'
  readonly account: boolean
}

const NAMED: Subject = { slot: 'ref:r1', account: true }
const KEYED: Subject = { slot: 'key:k1', account: true }
const ANONYMOUS: Subject = { slot: 'anonymous', account: true }
const UNLABELLED: Subject = { slot: 'ref:r1', account: false }

/** What an old build left behind, and when. */
export interface StoredRows {
  readonly subject: Subject
  /** Wall clock when the last row was written. */
  readonly now: number
  readonly rows: readonly StoredRow[]
}

type Scene = readonly [what: string, subject: Subject, leave: (lab: Lab) => Promise<unknown>]

const K1 = { idempotencyKey: 'k1' }
const conflict = {
  type: 'bytes',
  status: 409,
  body: '{"code":"IDEMPOTENCY_CONFLICT"}',
  commit: false,
} as const
const once = { maxRetries: 0 }

/** The order is placed, its process is killed while the service is silent. */
async function killed(lab: Lab, request = order('r1'), options: CreateOptions = {}): Promise<void> {
  const process = lab.process()
  lab.fault({ type: 'stall' })
  await lab.begin(() => process.client.orders.create(request, options))
  process.kill()
}

async function aborted(lab: Lab): Promise<void> {
  const controller = new AbortController()
  lab.fault({ type: 'stall' })
  const { ending } = await lab.begin(() =>
    lab.client().orders.create(order('r1'), { signal: controller.signal }),
  )
  controller.abort()
  await failure(ending)
}

async function lost(lab: Lab, request = order('r1'), options: CreateOptions = {}): Promise<void> {
  lab.fault({ type: 'commitThenDrop' })
  await failure(lab.client(once).orders.create(request, options))
}

async function refused(lab: Lab, request = order('r1'), options: CreateOptions = {}): Promise<void> {
  lab.fault({ type: 'status', status: 402, code: 'NO_FUNDS' })
  await failure(lab.client(once).orders.create(request, options))
}

/** Refused under its first key, and under the second one, which the call goes on with. */
async function moved(lab: Lab): Promise<void> {
  await refused(lab)
  lab.fault({ type: 'status', status: 402, code: 'NO_FUNDS' }, 2)
  await failure(lab.create())
}

async function conflicting(lab: Lab, request = order('r1'), options: CreateOptions = {}): Promise<void> {
  lab.fault(conflict)
  await failure(lab.client(once).orders.create(request, options))
}

async function unread(lab: Lab): Promise<void> {
  const end = lab.fault({ type: 'cutBody' }, 'always')
  await failure(lab.create())
  end()
}

/** Rows of every state, and how each came to be. */
export const SCENES: readonly Scene[] = [
  ['open, its response was lost', NAMED, lost],
  [
    'open, its response was lost, with a random key',
    UNLABELLED,
    async (lab) => {
      lab.fault({ type: 'commitThenDrop' })
      await failure(lab.unlabelled(once).orders.create(order('r1')))
    },
  ],
  ["open, its response was lost, under the caller's key", NAMED, (lab) => lost(lab, order('r1'), K1)],
  ['open, its response was lost, named by its key', KEYED, (lab) => lost(lab, anonymousOrder(), K1)],
  ['open, its response was lost, without a name', ANONYMOUS, (lab) => lost(lab, anonymousOrder())],
  [
    'open, its response was lost under its second key',
    NAMED,
    async (lab) => {
      await refused(lab)
      lab.fault({ type: 'status', status: 402, code: 'NO_FUNDS' })
      lab.fault({ type: 'commitThenDrop' })
      await failure(lab.client({ maxRetries: 1 }).orders.create(order('r1')))
    },
  ],
  ['open, aborted by its caller', NAMED, aborted],
  [
    'open, refused after doubt',
    NAMED,
    async (lab) => {
      lab.fault({ type: 'drop' })
      lab.fault({ type: 'status', status: 402, code: 'NO_FUNDS' })
      await failure(lab.create())
    },
  ],
  [
    'open, in conflict after doubt',
    NAMED,
    async (lab) => {
      await lost(lab)
      await conflicting(lab)
    },
  ],
  ['busy', NAMED, killed],
  ['busy, named by its key', KEYED, (lab) => killed(lab, anonymousOrder(), K1)],
  ['busy, without a name', ANONYMOUS, (lab) => killed(lab, anonymousOrder())],
  [
    'busy, continued after doubt',
    NAMED,
    async (lab) => {
      await lost(lab)
      await killed(lab)
    },
  ],
  ['queued', NAMED, (lab) => lab.client().orders.enqueue(order('r1'))],
  ['queued, with a random key', UNLABELLED, (lab) => lab.unlabelled().orders.enqueue(order('r1'))],
  ['queued, named by its key', KEYED, (lab) => lab.client().orders.enqueue(anonymousOrder(), K1)],
  [
    'queued again after a refusal',
    NAMED,
    async (lab) => {
      await refused(lab)
      await lab.client().orders.enqueue(order('r1'))
    },
  ],
  [
    'queued again after refusals under two keys',
    NAMED,
    async (lab) => {
      await moved(lab)
      await lab.client().orders.enqueue(order('r1'))
    },
  ],
  [
    'queued again after a conflict',
    NAMED,
    async (lab) => {
      await conflicting(lab)
      await lab.client().orders.enqueue(order('r1'))
    },
  ],
  [
    "queued again under the caller's key, which was refused",
    KEYED,
    async (lab) => {
      await refused(lab, anonymousOrder(), K1)
      await lab.client().orders.enqueue(anonymousOrder(), K1)
    },
  ],
  [
    'queued, and not accepted when it was sent',
    NAMED,
    async (lab) => {
      await lab.client().orders.enqueue(order('r1'))
      lab.fault({ type: 'status', status: 429 })
      await lab.client().orders.recover()
    },
  ],
  [
    'taken over by enqueue()',
    NAMED,
    async (lab) => {
      await lost(lab)
      await lab.client().orders.enqueue(order('r1'))
    },
  ],
  ['created', NAMED, (lab) => lab.create()],
  ['created, named by its key', KEYED, (lab) => lab.create(anonymousOrder(), K1)],
  ['created, without a name', ANONYMOUS, (lab) => lab.create(anonymousOrder())],
  [
    'created twice, without a name',
    ANONYMOUS,
    async (lab) => {
      await lab.create(anonymousOrder())
      lab.runtime.jump(MINUTE)
      await lab.create(anonymousOrder())
    },
  ],
  [
    'created once and in doubt once, without a name',
    ANONYMOUS,
    async (lab) => {
      await lab.create(anonymousOrder())
      lab.runtime.jump(MINUTE)
      await lost(lab, anonymousOrder())
    },
  ],
  [
    'created as a duplicate, without a name',
    ANONYMOUS,
    (lab) => lab.create(anonymousOrder(), { allowDuplicate: true }),
  ],
  [
    'created, of which only the id is kept',
    NAMED,
    (lab) => lab.client({ remember: 'id' }).orders.create(order('r1')),
  ],
  [
    'created under its second key',
    NAMED,
    async (lab) => {
      await refused(lab)
      lab.fault({ type: 'status', status: 402, code: 'NO_FUNDS' })
      await lab.create()
    },
  ],
  ['created, unreadable, its id unknown', NAMED, unread],
  [
    'created, unreadable, its id known',
    NAMED,
    async (lab) => {
      const end = lab.fault({ type: 'transformBody', patch: [{ op: 'remove', path: '/status' }] }, 'always')
      await failure(lab.create())
      end()
    },
  ],
  [
    'created, unreadable, and busy',
    NAMED,
    async (lab) => {
      await unread(lab)
      await killed(lab)
    },
  ],
  ['refused', NAMED, refused],
  [
    'refused, with a random key',
    UNLABELLED,
    async (lab) => {
      lab.fault({ type: 'status', status: 402, code: 'NO_FUNDS' })
      await failure(lab.unlabelled().orders.create(order('r1')))
    },
  ],
  ['refused, named by its key', KEYED, (lab) => refused(lab, anonymousOrder(), K1)],
  ['refused, without a name', ANONYMOUS, (lab) => refused(lab, anonymousOrder())],
  ['refused under two keys', NAMED, moved],
  [
    "refused under two keys of the caller's",
    NAMED,
    async (lab) => {
      await refused(lab, order('r1'), { idempotencyKey: 'k0' })
      await refused(lab, order('r1'), K1)
    },
  ],
  [
    'not looked at',
    NAMED,
    async (lab) => {
      lab.fault({ type: 'status', status: 401 })
      await failure(lab.create())
    },
  ],
  [
    'never sent',
    NAMED,
    async (lab) => {
      lab.fault({ type: 'refuseConnection' })
      await failure(lab.client(once).orders.create(order('r1')))
    },
  ],
  [
    'cancelled',
    NAMED,
    async (lab) => {
      const controller = new AbortController()
      const never = lab.client({ apiKey: () => new Promise<string>(() => {}) })
      const { ending } = await lab.begin(() =>
        never.orders.create(order('r1'), { signal: controller.signal }),
      )
      controller.abort()
      await failure(ending)
    },
  ],
  ['in conflict', NAMED, conflicting],
  [
    'in conflict, with a random key',
    UNLABELLED,
    async (lab) => {
      lab.fault(conflict)
      await failure(lab.unlabelled().orders.create(order('r1')))
    },
  ],
  ['in conflict, named by its key', KEYED, (lab) => conflicting(lab, anonymousOrder(), K1)],
  [
    'in conflict with what was refused',
    NAMED,
    async (lab) => {
      await refused(lab)
      await conflicting(lab)
    },
  ],
  [
    'abandoned',
    NAMED,
    async (lab) => {
      await lost(lab)
      lab.runtime.jump(1)
      await lab.client().orders.resolve({ externalOrderId: 'r1' }, { as: 'abandoned' })
    },
  ],
  [
    'abandoned, named by its key',
    KEYED,
    async (lab) => {
      await lost(lab, anonymousOrder(), K1)
      lab.runtime.jump(1)
      await lab.client().orders.resolve(K1, { as: 'abandoned' })
    },
  ],
  [
    'forgotten',
    NAMED,
    async (lab) => {
      await lab.create()
      await lab.client().orders.forget({ externalOrderId: 'r1' })
    },
  ],
  ['nothing', NAMED, async () => {}],
]

/** Runs one scene and takes its rows. */
export async function leave([, subject, run]: Scene): Promise<StoredRows> {
  const lab = new Lab()
  await run(lab)
  const { scope } = lab.place('', subject.account ? 'shop' : null)
  const { rows } = await lab.rows.list(scope, { limit: 100 })
  return { subject, now: lab.runtime.now(), rows }
}

/** When the client comes by, milliseconds after the last write. */
const MOMENTS = { soon: 40_000, later: 5 * MINUTE, late: 60 * MINUTE, 'clock back': -60 * MINUTE } as const
type Moment = keyof typeof MOMENTS
const MOMENT_NAMES: readonly Moment[] = ['soon', 'later', 'late', 'clock back']

type Act = (lab: Lab, subject: Subject) => Promise<string>

/** What the client does, to a service that has bought nothing so far. */
const ACTS: Readonly<Record<string, Act>> = {
  create: (lab, subject) => create(lab, subject),
  'create, refused': (lab, subject) => {
    lab.fault({ type: 'status', status: 402, code: 'NO_FUNDS' }, 'always')
    return create(lab, subject)
  },
  'create, another payload': (lab, subject) => create(lab, subject, { quantity: 20 }),
  'create, another key': (lab, subject) => create(lab, subject, {}, { idempotencyKey: 'k0' }),
  'create, another API key': (lab, subject) => create(lab, subject, {}, {}, SECOND_API_KEY),
  enqueue: async (lab, { slot, account }) => {
    if (slot === 'anonymous') return '-'
    const orders = (account ? lab.client() : lab.unlabelled()).orders
    return await saying(orders.enqueue(requestOf(slot), optionsOf(slot)))
  },
  recover: (lab, subject) => recover(lab, subject, {}),
  'recover, refused': (lab, subject) => {
    lab.fault({ type: 'status', status: 402, code: 'NO_FUNDS' }, 'always', 'createOrder')
    return recover(lab, subject, {})
  },
  'recover, taking over': (lab, subject) => recover(lab, subject, { takeOver: true }),
  'recover, replaying all': (lab, subject) => recover(lab, subject, { replay: 'all' }),
  abandon: async (lab, { slot, account }) => {
    if (slot === 'anonymous') return '-'
    const orders = (account ? lab.client() : lab.unlabelled()).orders
    return await saying(orders.resolve(nameOf(slot), { as: 'abandoned' }))
  },
  forget: async (lab, { slot, account }) => {
    if (slot === 'anonymous') return '-'
    const orders = (account ? lab.client() : lab.unlabelled()).orders
    return await saying(orders.forget(nameOf(slot)))
  },
}

/** What a client does that finds the rows, by act, then by the moments at which it does so. */
export type Decisions = Readonly<Record<string, Readonly<Record<string, string>>>>

/** See {@link Decisions}. */
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

/** What a client says that finds the rows, what it sends, and what is stored afterwards. */
async function decide({ subject, now, rows }: StoredRows, moment: Moment, act: Act): Promise<string> {
  const lab = new Lab()
  // The ids that the rows have must not be drawn once more.
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
  { slot, account }: Subject,
  changes: Partial<CreateOrderRequest> = {},
  options: CreateOptions = {},
  apiKey: string = lab.sandbox.apiKey,
): Promise<string> {
  const { orders } = account ? lab.client({ apiKey }) : lab.unlabelled({ apiKey })
  const { order, info, error } = await told(
    orders.create({ ...requestOf(slot), ...changes }, { ...optionsOf(slot), ...options }),
  )
  if (error !== undefined) return `${error.code}, charged ${error.charged}`
  return order === undefined ? '' : `returns${info?.replayed === true ? ' what there was' : ''}`
}

async function recover(
  lab: Lab,
  { account }: Subject,
  options: { readonly takeOver?: boolean; readonly replay?: 'all' },
): Promise<string> {
  const { orders } = account ? lab.client() : lab.unlabelled()
  const outcomes = await all(orders.recover(options))
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
      const { state, generation, ambiguous, readable, rejection, hold, busyUntil, apiKeyTag } =
        JSON.parse(data)
      const facts = [
        ambiguous && 'ambiguous',
        state === 'open' && apiKeyTag === '' && 'unsent',
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
