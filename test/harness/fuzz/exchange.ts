/**
 * One public call with responses of {@link answerPlan}, in virtual time, and its checks. The call
 * must end in time, with a result of the documented shape or an error of this package. `charged`
 * must claim no more than the responses allow. The journal must be readable and agree with the
 * caller's result. No API key may leak, and nothing may be left behind.
 */
import { inspect } from 'node:util'
import fc from 'fast-check'
import * as errors from '../../../src/errors/classes.ts'
import {
  CustomerOrderingClient,
  MemoryStore,
  type OrderRecord,
  type Reconciled,
  type RecoveryOutcome,
  responseInfo,
} from '../../../src/index.ts'
import { all } from '../../support/calls.ts'
import { used } from '../../support/heap.ts'
import {
  agreement,
  amplification,
  monotony,
  silence,
  stability,
  termination,
  writeAhead,
} from '../../support/invariants.ts'
import { leaks, leaksAtAGlance, spellingsIn, wholeSpellingsIn } from '../../support/leaks.ts'
import { type LoggedCall, RunRecorder, recoveredOf, toldBy } from '../../support/run-log.ts'
import { REFUSALS_ALONE, REFUSALS_WITH_BODY } from '../../support/statuses.ts'
import { writesNoted } from '../../support/stores.ts'
import { VirtualTime } from '../../support/virtual-time.ts'
import {
  type Answer,
  type AnswerPlan,
  answerPlan,
  endlessPlan,
  PIECE,
  send,
  type TemplateName,
} from './answers.ts'

/** The order of all exchanges, as {@link answerPlan} shows it. */
const REFERENCE = 'r-1'
const ORDER_ID = 'ord_1'
const request = { serviceId: 'svc_1', target: '@x', quantity: 2 } as const
const named = { ...request, metadata: { externalOrderId: REFERENCE } }

/** An API key that every encoding changes. */
const KEY = 'sk_live+"CANARY\\/4eC39HqLyjWDarjtT1zdp7dc=='
const TOTAL = 20_000
const BASE_URL = 'https://api.example.com'
const DISTURBED: AnswerPlan = { ...endlessPlan, status: 500, fitting: true, delivery: 'breaks' }

/** The order's call received a 201 that it could not read. */
const UNREADABLE: AnswerPlan = {
  ...DISTURBED,
  status: 201,
  delivery: 'whole',
  mutations: [{ at: 2, how: 1, value: 0 }],
}
const PLACED: AnswerPlan = { ...UNREADABLE, mutations: [] }

type Money = 'none' | 'order' | 'request'
type Settling = 'recover' | 'reconcile' | 'resolve'

interface Call {
  readonly money: Money
  readonly suits: TemplateName
  /** Makes the call. `fits` checks the result. */
  readonly make: (client: CustomerOrderingClient, name: number) => Promise<unknown>
  readonly fits: (result: unknown) => boolean
  /** The kind of a call that settles or compares the order of an earlier call. */
  readonly settles?: Settling
  /**
   * The history before the call, so that there is an order to settle: the response to a first call,
   * if it was sent, and the time since then.
   */
  readonly before?: { readonly answer: AnswerPlan; readonly pause: number }
}

type Fields = Readonly<Record<string, unknown>>
const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown): boolean => typeof value === 'string' && value.trim() !== ''
const isWord = (value: unknown): boolean => typeof value === 'string'
/** True if each of these fields is as it must be. */
const has =
  (fields: Readonly<Record<string, (value: unknown) => boolean>>): Call['fits'] =>
  (value) =>
    isObject(value) && Object.entries(fields).every(([name, fits]) => fits(value[name]))
const isOrder = has({ id: isText, status: isWord, amount: Number.isSafeInteger })
const isBalance = has({ amount: Number.isSafeInteger, currency: isWord })
const isService = has({
  ...{ productId: isText, amount: Number.isSafeInteger, currency: isWord },
  ...{ minQuantity: Number.isFinite, maxQuantity: Number.isFinite, stepQuantity: Number.isFinite },
})
const isList =
  (fits: Call['fits']): Call['fits'] =>
  (value) =>
    Array.isArray(value) && value.every(fits)
const isPageOf = (fits: Call['fits']): Call['fits'] =>
  has({ items: isList(fits), offset: Number.isSafeInteger })
const isOutcome = has({
  outcome: (value) =>
    ['created', 'rejected', 'in_progress', 'still_open', 'needs_attention'].includes(String(value)),
  record: isObject,
  order: (value) => value === undefined || isOrder(value),
  error: (value) => value === undefined || errors.isCustomerOrderingError(value),
})
const MINUTE = 60_000

const reading = (suits: TemplateName, make: Call['make'], fits: Call['fits']): Call => ({
  money: 'none',
  suits,
  make,
  fits,
})
const placing = (make: Call['make']): Call => ({ money: 'order', suits: 'order', make, fits: isOrder })
const settling = (settles: Settling, call: Call, answer: AnswerPlan, pause: number): Call => ({
  ...call,
  settles,
  before: { answer, pause },
})
const recovering = (suits: TemplateName): Call =>
  reading(suits, ({ orders }) => all(orders.recover()), isList(isOutcome))
const reconciling = reading('orders', ({ orders }) => all(orders.reconcile()), isList(has({ kind: isWord })))
const resolving = reading(
  'order',
  ({ orders }) => orders.resolve({ externalOrderId: REFERENCE }, { as: 'created', orderId: ORDER_ID }),
  has({ state: (value) => value === 'created' }),
)
const MANY = { max: 12 } as const

/** Every public call that sends requests. */
export const CALLS: Readonly<Record<string, Call>> = {
  'services.list': reading('services', ({ services }) => services.list().toArray(MANY), isList(isService)),
  'services.list, one page': reading('services', ({ services }) => services.list(), isPageOf(isService)),
  'services.retrieve': reading('service', ({ services }) => services.retrieve('svc_1'), isService),
  'balance.retrieve': reading('balance', ({ balance }) => balance.retrieve(), isBalance),
  'orders.list': reading('orders', ({ orders }) => orders.list({ limit: 2 }).toArray(MANY), isList(isOrder)),
  'orders.list ahead': reading(
    'orders',
    ({ orders }) => orders.list({ limit: 2 }, { prefetch: 3 }).toArray(MANY),
    isList(isOrder),
  ),
  'orders.list, one page': reading('orders', ({ orders }) => orders.list(), isPageOf(isOrder)),
  'orders.retrieve': reading('order', ({ orders }) => orders.retrieve('ord_1'), isOrder),
  'orders.waitFor': reading(
    'order',
    ({ orders }) =>
      orders.waitFor('ord_1', { until: ({ status }) => status === 'delivered', timeout: TOTAL }),
    isOrder,
  ),
  'request GET': reading(
    'order',
    (client) => client.request({ method: 'GET', path: '/v1/refunds' }),
    () => true,
  ),
  'request POST': {
    money: 'request',
    suits: 'order',
    make: (client, name) =>
      client.request({
        method: 'POST',
        path: '/v1/refunds',
        body: { a: 1 },
        ...(name === 1 ? { idempotencyKey: 'key-1' } : {}),
      }),
    fits: () => true,
  },
  'orders.create': placing(({ orders }) => orders.create(named)),
  'orders.create with a key': placing(({ orders }) => orders.create(request, { idempotencyKey: 'key-1' })),
  'orders.create without a name': placing(({ orders }) => orders.create(request)),
  'orders.recover by replay': settling('recover', recovering('order'), DISTURBED, MINUTE),
  'orders.recover by a look-up': settling('recover', recovering('orders'), DISTURBED, 40 * MINUTE),
  'orders.recover by id': settling('recover', recovering('order'), UNREADABLE, 40 * MINUTE),
  'orders.reconcile': settling('reconcile', reconciling, DISTURBED, MINUTE),
  'orders.reconcile of a created order': settling('reconcile', reconciling, PLACED, MINUTE),
  'orders.resolve': settling('resolve', resolving, DISTURBED, MINUTE),
}

export interface Exchange {
  readonly call: keyof typeof CALLS
  readonly answers: readonly AnswerPlan[]
  readonly maxRetries: number
  readonly name: number
}

export const exchange: fc.Arbitrary<Exchange> = fc.record({
  call: fc.constantFrom(...Object.keys(CALLS)),
  answers: fc.array(answerPlan, { minLength: 1, maxLength: 3 }),
  maxRetries: fc.nat(2),
  name: fc.nat(1),
})

export interface Ended {
  readonly broken: readonly string[]
  readonly answers: number
  readonly accepted: boolean
  /** Maximum bytes read from one response. */
  readonly taken: number
  /** Additional memory of this thread while it read an endless body, in bytes. */
  readonly peak: number
}

interface Made {
  readonly result?: unknown
  readonly error?: unknown
  readonly accepted: boolean
}

const CLASSES = new Set<unknown>(
  Object.values(errors).filter((value) => typeof value === 'function' && value.prototype instanceof Error),
)

export async function runExchange(plan: Exchange): Promise<Ended> {
  const call = CALLS[plan.call]
  if (call === undefined) throw new TypeError(`there is no call ${plan.call}`)
  const baseline = used()
  const time = new VirtualTime()
  const owner = {}
  const service = {}
  const log = new RunRecorder()
  log.everyRequest = false
  const slots: string[] = []
  log.intent('the order', slots)
  let current: LoggedCall | undefined
  const events: unknown[] = []
  const lines: unknown[] = []
  const heard: Answer[] = []
  /** Include the requests of the call before: responses to orders, and to reads. */
  const placed: Answer[] = []
  const read: Answer[] = []
  const { before } = call
  let early = before?.answer
  const store = writesNoted(new MemoryStore(), (row) => {
    log.row(row)
    log.printed.push(row.data)
    const slot = log.rows.at(-1)?.record?.slot
    if (slot !== undefined && !slots.includes(slot)) slots.push(slot)
  })
  const fetch = async (_input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const headers = init?.headers as Readonly<Record<string, string>>
    const sent = early ?? plan.answers[Math.min(heard.length, plan.answers.length - 1)]
    if (sent === undefined) throw new TypeError('no answer is planned')
    const creates = init?.method === 'POST' && String(_input).endsWith('/v1/orders')
    const logged = creates
      ? log.request({
          intent: 'the order',
          key: headers['idempotency-key'] ?? '',
          body: String(init?.body),
          ...(current === undefined ? {} : { call: current.id }),
        })
      : undefined
    let answer: Answer | undefined
    const answered = send(sent, call.suits, headers['authorization'] ?? '', time, service, (known) => {
      answer = known
      ;(creates ? placed : read).push(known)
      if (early === undefined) heard.push(known)
    })
    if (logged !== undefined && answer?.failed === false) {
      Object.assign(logged, { answeredTime: time.now })
      log.answered(logged, sent.status, codeIn(answer.text), answer.text !== undefined)
    }
    return await answered
  }
  const tell = (event: unknown): void => void events.push(event)
  const line = (...words: unknown[]): void => void lines.push(words)
  const client = new CustomerOrderingClient(
    {
      baseUrl: BASE_URL,
      apiKey: KEY,
      account: 'shop',
      store,
      fetch,
      timeout: 5_000,
      totalTimeout: TOTAL,
      maxRetries: plan.maxRetries,
      hooks: { onRequest: tell, onResponse: tell, onRetry: tell, onSettled: tell },
      logger: { debug: line, info: line, warn: line, error: line },
      logLevel: 'debug',
    },
    time.runtime(owner, 1),
  )
  const broken: string[] = []
  const must = (held: boolean, what: string): void => {
    if (!held) broken.push(what)
  }
  const made = async (kind: LoggedCall['kind'] | undefined, make: () => Promise<unknown>): Promise<Made> => {
    const facts = { time: time.now, totalTimeout: TOTAL, maxRetries: plan.maxRetries }
    const intent = kind === 'create' ? { intent: 'the order' } : {}
    const logged = kind && log.call({ kind, ...intent, ...facts })
    current = logged
    const end: Made = await make().then(
      (result) => ({ result, accepted: true }),
      (error: unknown) => ({ error, accepted: false }),
    )
    const { result, error, accepted } = end
    if (logged === undefined) return end
    if (kind === 'recover') {
      const outcomes = Array.isArray(result) ? (result as readonly RecoveryOutcome[]) : []
      const recovered = outcomes.map((outcome) => recoveredOf('the order', outcome, time.now))
      log.ended(logged, time.now, { recovered })
    } else if (accepted)
      log.ended(logged, time.now, {
        told: { charged: 'yes', orderId: String(Reflect.get(Object(result), 'id')) },
      })
    else
      log.ended(logged, time.now, {
        told: errors.isCustomerOrderingError(error) ? toldBy(error) : { charged: 'unknown' },
      })
    return end
  }
  let end: Made = { accepted: false }
  let remembered: readonly OrderRecord[] = []
  let stored: readonly OrderRecord[] = []
  const live = async (): Promise<void> => {
    if (before !== undefined) {
      await made('create', () => client.orders.create(named))
      current = undefined
      await time.sleep(service, before.pause)
    }
    early = undefined
    remembered = await all(client.orders.remembered({ since: 0 }))
    const began = time.now
    const kind = call.settles === 'recover' ? 'recover' : call.money === 'order' ? 'create' : undefined
    end = await made(kind, () => call.make(client, plan.name))
    const most = TOTAL * (call.money === 'none' ? 30 : 1)
    must(time.now - began <= most + 1_000, `the call took ${time.now - began} ms`)
    stored = await all(client.orders.remembered({ since: 0 }))
    for (const record of stored) must(isConsistent(record), `inconsistent record ${JSON.stringify(record)}`)
    await all(client.orders.unresolved())
    await client.close()
  }
  await time
    .run(live())
    .catch((error: unknown) => must(false, `the run ended: ${error instanceof Error ? error.stack : error}`))
  const { result, error, accepted } = end
  log.leftovers += time.pending(owner)
  if (accepted) must(call.fits(result), `the result does not fit: ${inspect(result)}`)
  else judgeError(error, call.money, heard, must)
  if (call.settles !== undefined)
    judgeSettled(call.settles, accepted ? result : undefined, { placed, read, stored, remembered }, must)
  if (accepted && call.settles !== undefined && isFlawless(plan.answers[0]))
    must(JSON.stringify(result).includes(`"${ORDER_ID}"`), `${plan.call} misses the order that was shown`)
  if (accepted && call.money === 'order')
    must(
      heard.some((answer) => isSuccess(answer) && answer.text?.includes('id') === true),
      'the order was never answered',
    )
  must(({} as Fields)['polluted'] === undefined, 'the prototype of all objects was changed')
  // A service that splits the key has created another text.
  const spellings = heard.some(({ broken: inPieces }) => inPieces) ? wholeSpellingsIn : spellingsIn
  if (spellings === spellingsIn) log.secrets.push(KEY)
  for (const invariant of [writeAhead, stability, agreement, silence, termination, amplification, monotony])
    broken.push(...invariant(log))
  const { serverMessage } = isObject(error) ? error : {}
  const values: Record<string, unknown> = { error, serverMessage, events, lines, rows: log.rows }
  // A read returns the service's own data unchanged. The stored part of it and the headers must be
  // clean.
  const info = isObject(result) || Array.isArray(result) ? responseInfo(result as object) : undefined
  values['info'] = info
  values['headers'] = info === undefined ? [] : [...info.headers]
  const clean = call.money === 'order' || call.settles === 'recover' || call.settles === 'resolve'
  if (clean || !heard.some(({ echoes }) => echoes)) values['result'] = result
  // Check this only sometimes, because it takes as long as everything else.
  const closely = heard.some(({ echoes, plan }) => echoes && plan.template % 8 === 0)
  const look = closely ? leaks : leaksAtAGlance
  broken.push(...look(KEY, values, spellings))
  const taken = Math.max(0, ...heard.map((answer) => answer.taken()))
  must(taken <= 16 * 1024 * 1024 + 2 * PIECE, `${taken} bytes of one answer were read`)
  const peak = Math.max(0, ...heard.map((answer) => answer.peak() - baseline))
  return { broken, answers: heard.length, accepted, taken, peak }
}

/** True if a correct service could send this response. */
function isFlawless(plan: AnswerPlan | undefined): boolean {
  if (plan === undefined) return false
  const { status, fitting, mutations, changes, headers, delivery } = plan
  const whole = mutations.length + changes.length + headers.length === 0 && delivery === 'whole'
  return (status === 200 || status === 201) && fitting && whole
}

function codeIn(text: string | undefined): string | undefined {
  return text?.includes('IDEMPOTENCY_IN_PROGRESS') === true ? 'IDEMPOTENCY_IN_PROGRESS' : undefined
}

/**
 * True if a response certainly states that nothing was bought. Implemented independently of the
 * outcome table.
 */
function refuses({ status, text, failed }: Answer): boolean {
  if (failed) return false
  if (REFUSALS_ALONE.has(status)) return true
  if (!REFUSALS_WITH_BODY.has(status) || text === undefined) return false
  try {
    const body: unknown = JSON.parse(text)
    return isObject(body) && Object.keys(body).length > 0
  } catch {
    return false
  }
}

type Must = (held: boolean, what: string) => void

/** Values that only another order has, anywhere in a body: its reference, service or quantity. */
const ANOTHERS = /"(?:externalOrderId":"(?!r-1")|serviceId":"(?!svc_1")|quantity":(?!2\b)[-\d])/

/** A 201 is a charge unless its body belongs to another order. */
const proves = ({ status, failed, text = '' }: Answer): boolean =>
  status === 201 && !failed && !ANOTHERS.test(text)

const isSuccess = ({ status, failed }: Answer): boolean => !failed && status >= 200 && status < 300

/**
 * Whatever says that the order exists needs a response that has shown it, and whatever says that it
 * was refused needs only refusals. Reads change nothing. I6 compares the rest with the record.
 */
function judgeSettled(
  settles: Settling,
  result: unknown,
  known: Readonly<Record<'placed' | 'read', readonly Answer[]>> &
    Readonly<Record<'stored' | 'remembered', readonly OrderRecord[]>>,
  must: Must,
): void {
  const { placed, read, stored, remembered } = known
  const [record] = stored
  must(stored.length === 1, `${stored.length} records are stored`)
  const shows = (answer: Answer): boolean =>
    isSuccess(answer) && [ORDER_ID, REFERENCE].some((name) => answer.text?.includes(name))
  const isProven = placed.some(proves)
  const exists = isProven || placed.some(isSuccess) || read.some(shows)
  if (settles === 'reconcile') {
    must(JSON.stringify(stored) === JSON.stringify(remembered), 'reconcile() changed what is remembered')
    for (const { kind, record: own } of (result ?? []) as readonly Reconciled[]) {
      must((kind === 'only_remote') === (own === undefined), `${kind} with${own ? '' : 'out'} a record`)
      if (kind === 'matched' || kind === 'amount_differs')
        must(read.some(shows), `${kind}, and no response showed the order`)
    }
    return
  }
  must(record?.state !== 'created' || exists, 'the record is created, and nobody has heard of an order')
  must(record?.state === 'created' || !isProven, `the record is ${record?.state} although 201 was heard`)
  must(record?.state !== 'rejected' || placed.every(refuses), 'the record is rejected without refusals')
}

function judgeError(error: unknown, money: Money, heard: readonly Answer[], must: Must): void {
  if (!errors.isCustomerOrderingError(error) || !CLASSES.has((error as object).constructor)) {
    must(false, `not one of our errors: ${String(error)} ${error instanceof Error ? error.stack : ''}`)
    return
  }
  const { message, charged, attempts, code } = error
  must(/^[ -~]{1,2000}$/.test(message), `the message is not plain: ${JSON.stringify(message)}`)
  must(typeof code === 'string' && code.length >= 3, `the code is ${code}`)
  must(Number.isSafeInteger(attempts) && attempts >= 0, `attempts are ${attempts}`)
  if (money === 'none') must(charged !== 'yes' || heard.length === 0, `a read was told '${charged}'`)
  if (money === 'request') must(charged === 'unknown', `a request was told '${charged}'`)
  if (money !== 'order') return
  if (charged === 'no')
    must(heard.every(refuses), `told 'no' (${code}) after ${heard.map(({ status }) => status).join(', ')}`)
  if (heard.some(proves)) must(charged === 'yes', `heard 201 and was told '${charged}' (${code})`)
  if (charged === 'yes') must(heard.some(isSuccess), `told 'yes' without a success`)
}

/** What a record says of itself. */
function isConsistent({ slot, key, state, createdAt, rejection, order, firstSentAt }: OrderRecord): boolean {
  return (
    isText(slot) &&
    isText(key) &&
    (state === 'rejected') === (rejection !== undefined) &&
    (order === undefined || state === 'created') &&
    (firstSentAt === undefined || firstSentAt >= createdAt)
  )
}
