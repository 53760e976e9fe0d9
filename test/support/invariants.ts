/**
 * The promises I1 to I12 of docs/invariants.md, each as one function over the log of a run. All
 * harnesses (simulation, enumeration of crashes, killed processes, fleet, killed browsers) use
 * these functions, so that each promise is stated once.
 *
 * A function returns the broken promises, one sentence each. An empty list means that the promise
 * held.
 */
import { isConflict, type StoredRecord } from '../harness/core.ts'
import { spellingsIn } from './leaks.ts'
import {
  chargedBy,
  type LoggedAttempt,
  type LoggedCall,
  type LoggedCharge,
  type LoggedIntent,
  type LoggedRequest,
  type LoggedRow,
  type Recovered,
  type RunLog,
} from './run-log.ts'
import { CHECKED_REFUSALS, DEFINITE } from './statuses.ts'

export type Invariant = (log: RunLog) => string[]

/**
 * I1: an intent is charged at most as often as its caller wanted it, which is once. No key leaves later than the safe-retry
 * window after its first send, by the sender's clock: after that, a service that forgets keys would charge again.
 */
export const oneCharge: Invariant = (log) => [...chargedOften(log), ...sentLate(log)]

const sentLate: Invariant = (log) => {
  // A mark of another process whose clock is behind does not show when the key was sent.
  const timed = log.rows.filter(({ record }) => record?.firstSentAt !== 0)
  return log.requests.flatMap((request) => {
    const { at, call, intent, key, awake: wall = request.wall, awakeAt: time = request.time } = request
    const sender = log.calls[call ?? -1]
    if (sender === undefined) return []
    const { sendsFor, clockSet, attempt = 0, totalTimeout, time: began } = sender
    if (wall === undefined || sendsFor === undefined || clockSet === true) return []
    const { firstSentAt } = timed.findLast((row) => row.at < at && row.record?.key === key)?.record ?? {}
    // An attempt lasts no longer than its call.
    const lasts = Math.min(attempt, Math.max(0, began + totalTimeout - (time ?? began)))
    return firstSentAt === undefined || wall + lasts - firstSentAt <= sendsFor
      ? []
      : [`I1: ${intent} was sent with key ${key} ${wall - firstSentAt} ms after its first send`]
  })
}

const chargedOften: Invariant = (log) =>
  log.intents.flatMap(({ name, wanted }) => {
    const charges = log.charges.filter(({ intent }) => intent === name)
    if (charges.length <= wanted) return []
    const keys = charges.map(({ key, orderId }) => `${orderId} by key ${key}`).join(', ')
    return [`I1: ${name} was charged ${charges.length} times instead of ${wanted}: ${keys}`]
  })

/**
 * I2: after a recovery, every charged order was returned to a caller, is remembered as created, or
 * is listed as needing a person for a valid reason. An order in the service's list needs no person.
 */
export const noneLost: Invariant = (log) => {
  if (!log.recovered) return []
  return log.charges.flatMap((charge) => {
    const { intent, key, orderId } = charge
    if (isHidden(log, charge)) return []
    const returned = log.calls.some(({ told }) => told?.orderId === orderId)
    const remembered = rowsOf(log, intent).some(({ record }) => record?.order?.id === orderId)
    if (returned || remembered || isListed(log, intent, key, true)) return []
    return [`I2: order ${orderId} of ${intent} was charged, and nobody has heard of it`]
  })
}

/**
 * I3: when a request arrives, a record with its key and its exact body is stored, or one that
 * already states that the order exists and no longer needs the body. If the sender may have been
 * paused in between, an earlier record is enough, because another process may have settled the
 * order meanwhile. The same applies to a settled anonymous order, whose row the next one takes
 * over.
 */
export const writeAhead: Invariant = (log) =>
  log.requests.flatMap(({ at, intent, key, body }) => {
    const rows = rowsOf(log, intent)
    const before = rows.filter((row) => row.at <= at)
    const settled = ({ record }: LoggedRow): boolean => record?.key === key && record.state === 'created'
    if (isAnonymous(log, intent) && before.some(settled)) return []
    const stored = log.stopped ? before : newestOf(rows, at)
    if (stored.some((row) => settled(row) || (row.record?.key === key && row.record.body === body))) return []
    return [`I3: ${intent} was sent with key ${key} while no record had that key and body`]
  })

/**
 * I4: one key, one body, one key for each generation, and no other than the caller gave. Another body may go out under a key only after the record was
 * closed as rejected in between, when the caller corrects a refused order, or held for a conflict.
 */
export const stability: Invariant = (log) => {
  const broken: string[] = []
  for (const { id, idempotencyKey } of log.calls)
    if (idempotencyKey !== undefined)
      for (const { call, key } of log.requests)
        if (call === id && key !== idempotencyKey)
          broken.push(`I4: a call with the key ${idempotencyKey} sent ${key}`)
  const bodies = new Map<string, LoggedRequest>()
  for (const request of log.requests) {
    // The caller may give its own key to two orders, of which the service accepts one.
    const name = `${request.intent} ${request.key}`
    const earlier = bodies.get(name)
    bodies.set(name, request)
    if (earlier === undefined || earlier.body === request.body) continue
    const ids = new Set(log.rows.filter(({ record }) => record?.key === request.key).map(({ id }) => id))
    const versions = log.rows.filter(({ at, id }) => at < request.at && ids.has(id))
    const closed = versions.some(
      ({ at, record }) =>
        record !== undefined && at > earlier.at && (record.state === 'rejected' || isConflict(record)),
    )
    if (!closed) broken.push(`I4: key ${request.key} was sent with two bodies`)
  }
  const keys = new Map<string, string>()
  const closed = new Set<string>()
  for (const { id, record } of log.rows) {
    if (record === undefined) continue
    const wasClosed = closed.has(id)
    if (record.state === 'open') closed.delete(id)
    else closed.add(id)
    // A new order in a used anonymous slot restarts its generations, and so does an order after a
    // forgotten record.
    const generation = `${id} ${record.createdAt} ${record.generation}`
    const key = keys.get(generation)
    keys.set(generation, record.key)
    // Two anonymous orders may follow each other within a millisecond.
    if (wasClosed && record.slot.startsWith('anon:')) continue
    if (key !== undefined && key !== record.key)
      broken.push(
        `I4: generation ${record.generation} of ${record.slot} has the keys ${key} and ${record.key}`,
      )
  }
  return broken
}

/**
 * I5: a caller that was told `'no'` was not charged, and is not charged later without another
 * `create()` (or `resolve()`). A caller that was told `'yes'`, or got an order, was charged. A
 * caller that receives a 201, complete or not, is told `'yes'`. A recovery's report follows the
 * same rule: `created` means `'yes'`, `rejected` means `'no'`. `create()` returns the order that
 * was requested, and without a name never that of a concurrent call in the same process, nor of one
 * that only read it, too.
 */
export const truth: Invariant = (log) => [
  ...truthOfCallers(log),
  ...truthOfRecoveries(log),
  ...ordersAskedFor(log),
]

const ordersAskedFor: Invariant = (log) =>
  creates(log).flatMap((call) => {
    const { intent, payload, told } = call
    // An error that names an order does not return it.
    if (told?.orderId === undefined || told.code !== undefined) return []
    const { orderId } = told
    const charge = log.charges.find((candidate) => candidate.orderId === orderId)
    const bought = log.requests.find(({ at }) => at === charge?.requestedAt)?.payload
    if (payload !== undefined && bought !== undefined && bought !== payload)
      return [`I5: ${intent} asked for ${payload} and got the order ${orderId} for ${bought}`]
    if (call.process === undefined || !isAnonymous(log, intent)) return []
    const sends = ({ id }: LoggedCall): boolean => log.requests.some((request) => request.call === id)
    const twin = log.calls.find(
      (other) =>
        other !== call &&
        (other.process === call.process || !(sends(call) || sends(other))) &&
        other.kind === 'create' &&
        other.intent === intent &&
        ((other.told?.orderId === orderId && other.told.code === undefined) || other.id === charge?.call) &&
        overlaps(other, call),
    )
    return twin === undefined
      ? []
      : [`I5: ${intent} has no name and got the order ${orderId} of call ${twin.id} beside it`]
  })

const truthOfCallers: Invariant = (log) =>
  log.calls.flatMap((call) => {
    // A recovery that fails as a whole reports no order.
    if (call.kind === 'recover') return []
    const { told, endedAt, intent } = call
    if (told === undefined || endedAt === undefined) return []
    const charges = log.charges.filter((charge) => charge.intent === intent)
    const before = charges.filter(({ at }) => at < endedAt)
    if (told.orderId !== undefined && !before.some(({ orderId }) => orderId === told.orderId))
      return [`I5: ${intent} got the order ${told.orderId}, which was never charged`]
    const proven = log.requests.some(
      ({ call: sender, status, answeredTime }) =>
        sender === call.id && status === 201 && answeredTime !== undefined,
    )
    if (proven && told.charged !== 'yes')
      return [`I5: ${intent} heard 201 and was told '${told.charged}' (${told.code})`]
    if (told.charged === 'yes')
      return before.length > 0 ? [] : [`I5: ${intent} was told 'yes' but not charged`]
    if (told.charged === 'unknown') return []
    const other = charges.filter((charge) => !isHidden(log, charge) && !askedAgain(log, call, charge))
    if (other.some(({ at }) => at < endedAt) && wantedOf(log, intent) === 1)
      return [`I5: ${intent} was told 'no' (${told.code}) after it was charged`]
    return other.some(({ at }) => at > endedAt)
      ? [`I5: ${intent} was told 'no' (${told.code}) and was charged later without being asked for again`]
      : []
  })

const truthOfRecoveries: Invariant = (log) =>
  saidByRecoveries(log).flatMap(({ call, said, until }) => {
    const { intent, outcome, key, orderId, charged } = said
    const charges = log.charges.filter((charge) => charge.intent === intent)
    const bought = charges.some(
      (charge) =>
        charge.at < until && (orderId === undefined ? charge.key === key : charge.orderId === orderId),
    )
    if ((outcome === 'created' || charged === 'yes') && !bought)
      return [`I5: recovery says ${sayingOf(said)} of ${intent}, which was not charged for that order`]
    if (outcome !== 'rejected' || !log.everyWrite) return []
    const closed = inForce(log, said, call.at, until).filter(({ record }) => record?.state === 'rejected')
    // A refusal of another payload with the key proves nothing about the payload that owns the key.
    if (closed.some(({ record }) => record !== undefined && isConflict(record))) return []
    const first = closed.at(0)
    // I6 checks whether it was rejected at all.
    if (first === undefined) return []
    const spokenOf = Math.max(first.at, call.at)
    const other = charges.find(
      (charge) =>
        charge.key === key && !isHidden(log, charge) && !askedAfter(log, call, intent, charge, spokenOf),
    )
    return other === undefined
      ? []
      : [`I5: recovery says rejected of ${intent}, which is charged and was not asked for again`]
  })

/**
 * True if something sent the request twice, and its process heard only the second response, perhaps
 * a refusal. Nobody can know of such a charge, but it is not repeated.
 */
function isHidden({ requests }: RunLog, { requestedAt }: LoggedCharge): boolean {
  return requests.some(({ at, resent }) => at === requestedAt && resent === true)
}

/** True if another call, made after the moment that `'no'` is about, caused the charge. */
function askedAgain(log: RunLog, call: LoggedCall, charge: LoggedCharge): boolean {
  const spokenOf = closedUntil(log, call)
  return spokenOf !== undefined && askedAfter(log, call, call.intent, charge, spokenOf)
}

function askedAfter(
  log: RunLog,
  call: LoggedCall,
  name: string | undefined,
  charge: LoggedCharge,
  moment: number,
): boolean {
  const asked = log.calls.some(
    ({ id, kind, intent, at, endedAt, told }) =>
      id !== call.id &&
      kind !== 'recover' &&
      intent === name &&
      at < charge.requestedAt &&
      // A write of a call with an unknown outcome may be applied later, and requests the order
      // then.
      (endedAt === undefined ||
        endedAt > moment ||
        (told?.charged === 'unknown' && told.code === 'store' && endedAt > call.at)),
  )
  return asked && charge.call !== call.id && charge.requestedAt > moment
}

/**
 * The last moment of a call at which its order was neither open nor created, so that `'no'` was
 * true. Absent if there was none. With a concurrent call for the same order, that may be before the
 * call's end.
 */
function closedUntil(log: RunLog, { intent, at, endedAt = 0 }: LoggedCall): number | undefined {
  let moment: number | undefined
  let closed = true
  for (const row of rowsOf(log, intent)) {
    if (row.at > endedAt) break
    if (closed && row.at > at) moment = row.at
    const state = row.record?.state ?? 'rejected'
    // If an order is wanted more than once, an earlier purchase proves nothing about the next.
    closed = state === 'rejected' || (state === 'created' && wantedOf(log, intent) > 1)
  }
  return closed ? endedAt : moment
}

/**
 * I6: the caller's result agrees with the store. `'no'`: the record is closed without an order, or
 * absent. `'unknown'`: it is open, or closed with a key that belongs to another payload. `'yes'`:
 * it is created. If the store failed, any record may be reported as `'unknown'`, and a proven
 * charge may still wait to be stored. A call that overslept its deadline had no time to read the
 * record, and may report `'unknown'`. If calls run concurrently, only `'yes'` is checked, at the
 * end of the run. A recovery's report about a record was stored at some moment between the
 * recovery's beginning and the report, and `created` at the latest at the end of the run. A record
 * that needs a person has a reason.
 */
export const agreement: Invariant = (log) => [
  ...agreementOfCreates(log),
  ...agreementOfRecoveries(log),
  ...agreementOfSuccesses(log),
]

/** A `resolve()` that took a decision has it stored at some moment between its beginning and its end. */
const agreementOfSuccesses: Invariant = (log) => {
  if (!log.everyWrite) return []
  return log.calls.flatMap(({ intent, succeeded, decision, told, storeTrouble, at, endedAt = at }) => {
    if (intent === undefined || decision === undefined) return []
    const { orderId } = decision
    const isDecided = ({ record }: LoggedRow): boolean =>
      orderId === undefined
        ? record?.state === 'rejected' && !isConflict(record)
        : record?.state === 'created' && record.order?.id === orderId
    const says = inForce(log, { intent }, at, endedAt).some(isDecided)
    // A key names a nameless order only while it is open, so another call may settle it first.
    if (decision.isOwn === true && told?.code === 'invalid_request' && storeTrouble !== true && !says)
      return [`I2: a person could not say that ${orderId} is the order of ${intent}`]
    if (succeeded !== true) return []
    if (
      orderId !== undefined &&
      !log.charges.some((charge) => charge.orderId === orderId && charge.intent === intent)
    )
      return [`I5: resolve() took ${intent} for ${orderId}, which is another order`]
    return says ? [] : [`I6: resolve() took ${intent} for ${orderId ?? 'given up'} and no record says so`]
  })
}

/** True if the service's list may show doubt about a refusal: no references, or others' orders. */
export function isVague({ listsReferences, otherOrders, charges, intents }: RunLog): boolean {
  const named = intents.filter(({ slots }) => slots.some((slot) => slot.startsWith('ref:')))
  const hasReferences = charges.some(({ intent }) => named.some(({ name }) => name === intent))
  return !listsReferences || otherOrders > 0 || !hasReferences
}

const agreementOfCreates: Invariant = (log) =>
  creates(log).flatMap((call) => {
    const { told, endedAt, intent } = call
    if (told === undefined || endedAt === undefined) return []
    // No later event removes a proven charge from the store.
    const proven = ({ record }: LoggedRow): boolean =>
      record?.state === 'created' && (told.orderId ?? record.order?.id) === record.order?.id
    if (told.charged === 'yes' && call.storeTrouble !== true && intent !== undefined)
      if (!keptRows(log, intent).some(proven) && !isDisplaced(log, call, intent, endedAt))
        return [`I6: ${intent} was told 'yes' (${told.code ?? 'an order'}) and the record has no order`]
    if (call.disturbed === true || log.calls.some((other) => other !== call && overlaps(other, call)))
      return []
    const record = newestOf(rowsOf(log, intent), endedAt).at(0)?.record
    const stored = chargedBy(record)
    if (told.charged === stored) return []
    // The slot still has the previous order, not the requested one.
    if (told.charged === 'no' && stored === 'yes' && wantedOf(log, intent) > 1) return []
    if (call.storeTrouble === true && told.charged !== 'no') return []
    if (call.overslept === true && told.charged === 'unknown' && told.code === 'timeout') return []
    // The look-up of an order whose refusal may hide a charge may fail, or show nothing of references.
    const looks = record?.maybeHidden === true && !log.requests.some(({ call: sender }) => sender === call.id)
    const isDoubt = looks && (told.code !== 'unresolved_order' || isVague(log))
    if (isDoubt && stored === 'no' && told.charged === 'unknown') return []
    // A write that an earlier call abandoned may be applied during this call, which then cannot
    // know who wrote the record.
    const trouble = log.calls.some(
      (other) => other.storeTrouble === true && other.intent === intent && other.at < call.at,
    )
    if (trouble && told.charged === 'unknown') return []
    return [
      `I6: ${intent} was told '${told.charged}' (${told.code ?? 'an order'}) while the record says '${stored}'`,
    ]
  })

const agreementOfRecoveries: Invariant = (log) =>
  saidByRecoveries(log).flatMap(({ call, said, until }) => {
    const { intent, outcome, orderId, charged } = said
    const broken = (what: string): string[] => [
      `I6: recovery ${call.id} says ${sayingOf(said)} of ${intent}, ${what}`,
    ]
    // An unreadable row has no known name.
    if (said.key === '') return call.storeTrouble === true ? [] : broken('and it is readable')
    if (outcome === 'created') {
      if (charged !== undefined && charged !== 'yes') return broken(`and that it is charged: '${charged}'`)
      const proven = rowsOf(log, intent).some(
        ({ record }) =>
          record?.state === 'created' &&
          (orderId === undefined ? record.key === said.key : record.order?.id === orderId),
      )
      return proven || call.storeTrouble === true ? [] : broken('and no record says so')
    }
    if (!log.everyWrite) return []
    const rows = inForce(log, said, call.at, until)
    if (outcome === 'rejected') {
      const closed = rows.filter(({ record }) => record?.state === 'rejected')
      if (closed.length === 0) return broken('whose record was not')
      const conflict = closed.some(({ record }) => record !== undefined && isConflict(record))
      return charged === undefined || charged === 'no' || (charged === 'unknown' && conflict)
        ? []
        : broken(`and that it is charged: '${charged}'`)
    }
    const pending = rows.filter(({ open }) => open)
    // A call of the same process may be at work on a record that a person has just closed.
    const isLive = (other: LoggedCall): boolean =>
      other !== call &&
      other.kind !== 'resolve' &&
      (other.intent ?? intent) === intent &&
      other.process === call.process &&
      overlaps(call, other)
    if (pending.length === 0 && outcome === 'in_progress' && log.calls.some(isLive)) return []
    if (pending.length === 0) return broken('whose record was settled')
    if (charged === 'no') return broken("and that it is charged: 'no'")
    return isSupported(log, call, said, until) ? [] : broken('for which there was no such reason')
  })

/**
 * I7: a later generation's key is sent only if every request with the earlier keys got a definite
 * refusal, and one of these holds for the key that was left: another call, which began after its
 * first refusal (as far as clocks show), received a second one; its window had no room for the call; the first key must not be sent again (a person abandoned it, or a clock went
 * back); or the first send of an earlier key has no known time. It is also sent if the caller gave
 * a new key after a refusal. Keys before the last one that a person abandoned do not count.
 */
export const generations: Invariant = (log) => {
  const broken: string[] = []
  const seen = new Set<string>()
  for (const request of log.requests) {
    const record = log.rows.find((row) => row.record?.key === request.key)?.record
    if (record === undefined || record.generation === 0 || seen.has(request.key)) continue
    seen.add(request.key)
    const earlier = log.rows.flatMap(({ at, record: other }) =>
      other !== undefined &&
      at < request.at &&
      other.slot === record.slot &&
      other.createdAt === record.createdAt &&
      other.generation <= record.generation
        ? other
        : [],
    )
    // A person who abandons an order closes it with an unsent key.
    const abandoned = earlier.filter(({ rejection }) => rejection?.kind === 'abandoned')
    const from = Math.max(0, ...abandoned.map(({ generation }) => generation))
    if (from === record.generation) continue
    const before = earlier.filter(({ generation }) => generation >= from && generation < record.generation)
    if (before.length === 0) {
      broken.push(`I7: generation ${record.generation} of ${record.slot} has none before it`)
      continue
    }
    const keys = new Set(before.map(({ key }) => key))
    const sent = log.requests.filter(({ key, at }) => keys.has(key) && at < request.at)
    for (const { status, heard } of sent)
      if (!heard || !DEFINITE.has(status ?? 0))
        broken.push(`I7: ${record.slot} moved on from a key that was answered with ${status ?? 'nothing'}`)
    const refusals = sent.filter(({ status, heard }) => heard === true && CHECKED_REFUSALS.has(status ?? 0))
    const left = leftKey(log, request) ?? ''
    const isLeft = ({ key }: LoggedAttempt | LoggedRequest): boolean => key === left
    const [first, ...others] = refusals.filter(isLeft)
    const again = first !== undefined && others.some((refusal) => isLater(log, refusal, first))
    if (
      record.keyOrigin === 'caller'
        ? sent.length > 0 && refusals.length === 0
        : !again &&
          record.firstKeySentAt !== 0 &&
          !isUntimed(before, request) &&
          !isOver(log, request, [...sent.filter(isLeft), ...log.hidden.filter(isLeft)])
    )
      broken.push(`I7: ${record.slot} moved on from a key that was not refused twice, in two calls`)
  }
  return broken
}

/** The key that the record had before it moved on to a request's key. */
function leftKey({ rows }: RunLog, { key }: LoggedRequest): string | undefined {
  const moved = rows.find(({ record }) => record?.key === key)
  return rows.findLast(({ id, at }) => moved !== undefined && id === moved.id && at < moved.at)?.record?.key
}

/**
 * True if the first send of a record's key has no known time: the record is marked so, or a clock
 * was ahead or went back.
 */
function isUntimed(
  versions: readonly Pick<StoredRecord, 'firstSentAt' | 'updatedAt'>[],
  { wall = Number.POSITIVE_INFINITY }: Pick<LoggedRequest, 'wall'>,
): boolean {
  return versions.some(
    ({ firstSentAt, updatedAt }) =>
      firstSentAt === 0 ||
      updatedAt > wall + CLOCK_SKEW ||
      (firstSentAt !== undefined && firstSentAt > updatedAt + CLOCK_SKEW),
  )
}

/**
 * True if the window of earlier keys has no room for the call that left them, or if this is unknown
 * because a clock was wrong. A transport that may resend begins the window even if nothing has left. That call may have died, and another one sends.
 */
function isOver(log: RunLog, request: LoggedRequest, sent: readonly Partial<LoggedAttempt>[]): boolean {
  const { call, intent, key, wall } = request
  const moved = log.rows.find(({ record }) => record?.key === key)
  const movers = log.calls.filter(
    (other) =>
      moved !== undefined &&
      (other.intent ?? intent) === intent &&
      other.at <= moved.at &&
      (other.endedAt ?? other.diedAt ?? Number.POSITIVE_INFINITY) >= moved.at,
  )
  const sender = log.calls[call ?? -1]
  return (
    hasNoRoom(log, sender, wall, sent) ||
    movers.some((mover) => hasNoRoom(log, mover, moved?.record?.updatedAt, sent))
  )
}

/** True if there is no room at that time, by the clock of a call. */
function hasNoRoom(
  { calls }: RunLog,
  { kind, sendsFor, repeatsFor, attempt, totalTimeout = 0, clockSet }: Partial<LoggedCall> = {},
  wall: number | undefined,
  sent: readonly Partial<LoggedAttempt>[],
): boolean {
  if (clockSet === true) return true
  if (sendsFor === undefined || wall === undefined) return false
  const lasts = attempt ?? totalTimeout
  const room = kind === 'recover' ? (repeatsFor ?? sendsFor) : sendsFor - lasts
  return sent.some((other) => {
    // The window counts from the claim, which is stored after the call began and before the request
    // leaves.
    const ages = [wall - (calls[other.call ?? -1]?.wall ?? wall), wall - (other.wall ?? wall)]
    return ages.some((age) => age > room || age < -CLOCK_SKEW)
  })
}

/** True if a call received a refusal, and began after a refusal in another call. */
function isLater(log: RunLog, { call }: LoggedRequest, first: LoggedRequest): boolean {
  const began = log.calls.find(({ id }) => id === call)
  if (began === undefined || began.at > (first.answeredAt ?? 0)) return began !== undefined
  const sameTime = began.time >= (first.answeredTime ?? Number.POSITIVE_INFINITY)
  return call !== first.call && (sameTime || log.clocksDiffer)
}

/**
 * I8: an API key appears only in the header of its own request, neither plain nor in Base64 nor
 * percent-encoded anywhere else.
 */
export const silence: Invariant = (log) => {
  const text = log.printed.join('\n')
  return log.secrets.flatMap((secret) => {
    const found = spellingsIn(text, secret)
    return found.length === 0
      ? []
      : [`I8: an API key stands in a row of the store or in an error (${found.join(', ')})`]
  })
}

/** Time limit of a recovery for the store, for each of its records and pages, in milliseconds. */
const STORE_TIME = 30_000

/** The time limit of a recovery is that of its records and pages, each of which has its own. */
function timeOfRecovery(
  { reads, slowness }: RunLog,
  { id, totalTimeout, recovered = [] }: LoggedCall,
): number {
  const pages = reads.filter(({ call }) => call === id).length
  return (recovered.length + pages + 1) * (totalTimeout + slowness + STORE_TIME)
}

/**
 * How long a call waits for another process before it claims the order itself, plus the time of a
 * fast store.
 */
const LONGEST_WAIT = 15_000 + 5000

/** If the store works, no call hangs behind the claim of a dead process. */
const hungBehindClaim: Invariant = (log) =>
  log.clocksDiffer
    ? []
    : creates(log).flatMap((call) => {
        const { id, intent, process, time, storeTrouble } = call
        const first = log.requests.find((request) => request.call === id)
        const isTwin = (other: LoggedCall): boolean =>
          other !== call && other.process === process && overlaps(other, call)
        const isDelayed = storeTrouble === true || log.reads.some((read) => read.call === id)
        if (first?.time === undefined || isDelayed || log.calls.some(isTwin)) return []
        const waited = first.time - time
        return waited <= LONGEST_WAIT ? [] : [`I9: ${intent} was sent ${waited} ms after its call began`]
      })

/**
 * I9: every call of a living process ends within its time plus one second, and leaves nothing
 * behind. No call waits longer than 15 seconds for another process.
 */
export const termination: Invariant = (log) => [
  ...hungBehindClaim(log),
  ...log.calls.flatMap((call) => {
    if (call.died === true) return []
    if (call.endedTime === undefined) return [`I9: ${call.kind} of ${call.intent ?? 'all'} never ended`]
    const took = call.endedTime - call.time
    if (
      took <= (call.kind === 'recover' ? timeOfRecovery(log, call) : call.totalTimeout + log.slowness + 1000)
    )
      return []
    return [`I9: ${call.kind} of ${call.intent} took ${took} ms of ${call.totalTimeout}`]
  }),
  ...(log.leftovers === 0 ? [] : [`I9: ${log.leftovers} timers or listeners are left`]),
]

/** How often a call repeats a request for a success that it could not read. */
const MAX_REPLAYS = 2

/** How often a call reads the order list, because rows move during a read. */
const MAX_SWEEPS = 2

/**
 * I10: a call sends at most 1 + maxRetries requests, plus in-progress polls and body replays. A
 * recovery sends one request per record. A recovery reads an order by its id once, if it could not
 * read it before. Any other call does so 1 + maxRetries times at most. Recoveries read each page of
 * the list once in a sweep, and so does `create()` before it gives a refused order another key. It begins
 * again if another call has written the record since.
 */
export const amplification: Invariant = (log) => [
  ...log.calls.flatMap((call) => amplificationOfOrders(log, call)),
  ...amplificationOfReads(log),
  ...unclaimed(log),
]

function unclaimed({ everyRequest, requests, reads }: RunLog): string[] {
  if (!everyRequest) return []
  const broken: string[] = []
  for (const { call, intent, key } of requests)
    if (call === undefined) broken.push(`I10: ${intent} was sent with key ${key} by no call`)
  for (const { call, path } of reads) if (call === undefined) broken.push(`I10: ${path} was read by no call`)
  return broken
}

function amplificationOfReads(log: RunLog): string[] {
  if (log.reads.length === 0) return []
  const counts = new Map<string, { call: LoggedCall; path: string; ats: number[]; answered: number }>()
  for (const { call: sender, path, at, answered } of log.reads) {
    const call = sender === undefined ? undefined : log.calls[sender]
    if (call === undefined) continue
    const name = `${call.id} ${path}`
    const count = counts.get(name) ?? { call, path, ats: [], answered: 0 }
    counts.set(name, count)
    count.ats.push(at)
    if (answered === true) count.answered++
  }
  const broken: string[] = []
  const pages = new Map<LoggedCall, number>()
  for (const { call, path, ats, answered } of counts.values()) {
    const sent = ats.length
    const last = ats.at(-1) ?? 0
    const recovers = call.kind === 'recover'
    const isPage = !BY_ID.test(path)
    const meanwhile = rowsOf(log, call.intent).filter(({ at }) => at > call.at && at < last)
    const lookUps = recovers ? 1 : call.kind === 'create' ? 1 + meanwhile.length : 0
    const times = isPage ? MAX_SWEEPS * lookUps : 1
    const tries = recovers && !isPage ? 1 : 1 + call.maxRetries
    if (sent > times * tries || answered > times)
      broken.push(
        `I10: ${path} was read ${sent} times by ${call.kind} of ${call.intent ?? 'all'}, ${answered} times with success`,
      )
    if (isPage) pages.set(call, (pages.get(call) ?? 0) + 1)
  }
  // Each page begins at a row, and an empty one may follow. A service that ignores `offset` is found out by its third page,
  // but shows one page again before each order that is made meanwhile, so that the next sweep begins its pages at other rows.
  for (const [{ kind }, count] of pages)
    if (count > Math.max(2 * (log.charges.length + log.otherOrders + 1), 3))
      broken.push(`I10: ${count} pages of the list were read by ${kind}`)
  return broken
}

/** Path of one order. */
const BY_ID = /\/orders\/[^/?]+$/

function amplificationOfOrders(log: RunLog, { id, kind, intent, maxRetries }: LoggedCall): string[] {
  const sent = log.requests.filter(({ call }) => call === id)
  const own = kind === 'recover' ? log.intents.length : kind === 'create' ? 1 + maxRetries : 0
  if (sent.length <= own) return []
  const polls = sent.filter(({ status = 500, code }) => status < 500 && code === 'IDEMPOTENCY_IN_PROGRESS')
  // After a proven charge, or after another order's response, further requests of a call only read
  // the order.
  const reads = sent.some(
    ({ key, at, misled }) =>
      misled === true ||
      log.requests.some(
        (other) => other.key === key && (other.status ?? 500) < 300 && (other.answeredAt ?? at) < at,
      ),
  )
  const most = own + polls.length + (reads ? MAX_REPLAYS : 0)
  return sent.length <= most
    ? []
    : [`I10: ${sent.length} requests by ${kind} of ${intent ?? 'all'} where at most ${most} are explained`]
}

/**
 * I11: no record is removed while it may be needed. No record leaves `created`, except that the
 * next anonymous order takes its row over. Versions increase by one.
 */
export const monotony: Invariant = (log) => {
  const broken: string[] = []
  const newest = new Map<string, LoggedRow>()
  const highest = new Map<string, number>()
  for (const row of log.rows) {
    const { id, version, record } = row
    const before = newest.get(id)
    newest.set(id, row)
    const last = highest.get(id) ?? 0
    highest.set(id, Math.max(last, version))
    if (log.everyWrite && version > 0 && version <= last)
      broken.push(`I11: version ${version} of ${record?.slot ?? id} comes again`)
    const expected = before === undefined || before.version === 0 ? version : before.version + 1
    if (log.everyWrite && version > 0 ? version !== expected : version > 0 && version < expected - 1)
      broken.push(`I11: version ${version} of ${record?.slot ?? id} follows version ${expected - 1}`)
    const left = before?.record
    if (left !== undefined && version === 0 && (left.state === 'open' || isConflict(left)))
      broken.push(`I11: ${left.slot} was removed as ${left.rejection?.kind ?? left.state}`)
    if (left?.state !== 'created' || record === undefined) continue
    // Only the claim of the next anonymous order takes the row.
    if (hasNoName(left) && left.readable && record.key !== left.key && record.state === 'open') continue
    if (record.state !== 'created') broken.push(`I11: ${record.slot} went from created to ${record.state}`)
    else if (left.order?.id !== undefined && record.order?.id !== left.order.id)
      broken.push(`I11: ${record.slot} was order ${left.order.id} and became ${record.order?.id}`)
  }
  return broken
}

/**
 * I12: if all processes live and the service works, no order stays open except those that recovery
 * lists for a person.
 */
export const convergence: Invariant = (log) => {
  if (!log.recovered) return []
  return log.intents.flatMap(({ name }) => {
    const open = newestOf(rowsOf(log, name), Number.POSITIVE_INFINITY).filter((row) => row.open)
    return open.every(({ record }) => record !== undefined && isListed(log, name, record.key))
      ? []
      : [`I12: ${name} stays open and recovery does not list it`]
  })
}

/**
 * I1 for a store that was lost, restored or never shared: an order whose key any store computes
 * again, or gets from its caller, is charged at most once by the requests that leave within the
 * safe-retry window of the first request with its first key. Excludes calls that disagree about the
 * key or (in a shared store) about the body. Also excludes a charge with a later key, if the same
 * call received a refusal of the first key immediately before, or had to repeat the later key
 * because it was in doubt: the first key bought nothing then, and may buy later.
 */
export const oneChargeOfLost: Invariant = (log) =>
  log.intents.flatMap(({ name, wanted }) => {
    const sent = log.requests.filter(({ intent }) => intent === name)
    const [first] = sent
    const calls = log.calls.filter(({ intent }) => intent === name)
    const isAgreed = (values: readonly unknown[]): boolean => new Set(values).size <= 1
    if (first === undefined || !isAgreed(calls.map(({ idempotencyKey }) => idempotencyKey))) return []
    if (!log.storesDiffer && !isAgreed(sent.map(({ body }) => body))) return []
    const record = log.rows.find((row) => row.record?.key === first.key)?.record
    if (record === undefined || record.keyOrigin === 'random') return []
    const claimed = log.charges.filter((charge) => {
      if (charge.intent !== name) return false
      const request = sent.find(({ at }) => at === charge.requestedAt)
      const { sendsFor = 0 } = log.calls[charge.call ?? -1] ?? {}
      const age = (request?.time ?? 0) - (first.time ?? 0)
      if (age > sendsFor) return false
      const isRefused = ({ call, key, heard, status, answeredAt = charge.at }: LoggedRequest): boolean =>
        call === charge.call &&
        key === first.key &&
        heard === true &&
        status !== 409 &&
        CHECKED_REFUSALS.has(status ?? 0) &&
        answeredAt < charge.requestedAt
      const claim = log.rows.findLast(
        ({ at, record: row }) => at < charge.requestedAt && row?.key === charge.key,
      )
      return charge.key === first.key || !(sent.some(isRefused) || claim?.record?.ambiguous === true)
    })
    if (claimed.length <= wanted) return []
    const keys = claimed.map(({ key, orderId }) => `${orderId} by key ${key}`).join(', ')
    return [`I1: ${name} was charged ${claimed.length} times although its key was known: ${keys}`]
  })

/** The promises for a store that keeps acknowledged rows. */
export const INVARIANTS: readonly Invariant[] = [
  oneCharge,
  noneLost,
  writeAhead,
  stability,
  truth,
  agreement,
  generations,
  silence,
  termination,
  amplification,
  monotony,
  convergence,
]

/** The promises for stores that do not: they cannot be judged by remembered data. */
const OF_LOST_STORES: readonly Invariant[] = [oneChargeOfLost, silence, termination, amplification]

export function brokenPromises(log: RunLog): string[] {
  return (log.lost || log.storesDiffer ? OF_LOST_STORES : INVARIANTS).flatMap((invariant) => invariant(log))
}

/** The reports of all recoveries, each with its latest possible time. */
function saidByRecoveries({ calls }: RunLog) {
  return calls.flatMap((call) => {
    const { recovered = [], endedAt = Number.POSITIVE_INFINITY } = call
    return recovered.map((said) => ({ call, said, until: said.at ?? endedAt }))
  })
}

function sayingOf({ outcome, reason }: Recovered): string {
  return reason === undefined ? outcome : `${outcome} (${reason})`
}

/**
 * True if the last recovery reports that an order exists and its record agrees, or that it needs a
 * person for a valid reason.
 *
 * @param charged true for a charged order, which must be found
 */
function isListed(log: RunLog, name: string, key: string, charged = false): boolean {
  const last = log.calls.findLast(({ kind }) => kind === 'recover')
  return (
    last?.recovered?.some((said) => {
      const { intent, outcome, at = Number.POSITIVE_INFINITY } = said
      if (intent !== name || said.key !== key) return false
      if (outcome === 'needs_attention')
        return (
          isSupported(log, last, said, at) &&
          !(charged && log.listsReferences && isNamed(log, last, name) && !(said.cut === true && isLong(log)))
        )
      const isCreated = ({ record }: LoggedRow): boolean => record?.state === 'created' && record.key === key
      return outcome === 'created' && rowsOf(log, name).some(isCreated)
    }) === true
  )
}

/** True if the list has more rows than the pages of a look-up contain. */
function isLong({ charges, otherOrders }: RunLog): boolean {
  return charges.length + otherOrders > 200
}

/**
 * True if an order has a reference for a look-up, and a recovery has not read it from the service
 * again.
 */
function isNamed(log: RunLog, { id }: LoggedCall, name: string): boolean {
  const named = intentOf(log, name)?.slots.some((slot) => slot.startsWith('ref:'))
  return named === true && !log.requests.some(({ call, intent }) => call === id && intent === name)
}

/**
 * Maximum difference of clocks, in milliseconds. A record further in the future means that a clock
 * went back.
 */
const CLOCK_SKEW = 30_000

/** Reasons that a recovery gives after it has read the order from the service. */
const ASKED: ReadonlySet<string> = new Set(['refused', 'conflict'])

/** True if recovery's reason for leaving a record to a person is valid. */
function isSupported(log: RunLog, call: LoggedCall, said: Recovered, until: number): boolean {
  const { reason, intent } = said
  if (!log.everyWrite || reason === undefined)
    return said.outcome !== 'needs_attention' || reason !== undefined
  const pending = inForce(log, said, call.at, until).flatMap(({ open, record }) => (open && record) || [])
  const named = pending.some(({ externalOrderId }) => externalOrderId !== undefined)
  const refused = log.requests.some(
    (request) =>
      request.call === call.id &&
      request.intent === intent &&
      request.heard === true &&
      DEFINITE.has(request.status ?? 0),
  )
  // An order with a name is looked up before it is left to a person, unless the service was just
  // asked for it.
  const looked = log.reads.some((read) => read.call === call.id && !BY_ID.test(read.path))
  if (log.everyRequest && named && !looked && !(refused && ASKED.has(reason))) return false
  switch (reason) {
    case 'doubtful':
      // Only a list shows such an order.
      return named
    case 'past_window':
      return (
        isUntimed(pending, call) ||
        pending.some(({ firstSentAt, createdAt }) => isPastWindow(call, said, firstSentAt ?? createdAt))
      )
    case 'aborted':
      // The record itself is no reason, because it may have been written without one.
      return log.everyAbort
        ? log.calls.some((other) => other.intent === intent && (other.abortedAt ?? until) < until)
        : pending.some(({ hold }) => hold === 'aborted')
    case 'refused':
      return (
        refused ||
        log.requests.some(
          ({ key, heard, status, answeredAt }) =>
            key === said.key && heard === true && DEFINITE.has(status ?? 0) && (answeredAt ?? until) < until,
        )
      )
    case 'conflict':
      // A recovery that hears of the conflict may fail to store it.
      return (
        pending.some(isConflict) ||
        log.requests.some(
          (request) =>
            request.call === call.id &&
            request.intent === intent &&
            request.heard === true &&
            request.code === 'IDEMPOTENCY_CONFLICT',
        )
      )
    case 'api_key_changed':
      return log.rotated && pending.some(({ apiKeyTag }) => apiKeyTag !== '')
    case 'unreadable':
      return pending.some(({ state, body }) => state === 'created' && body === undefined)
    case 'corrupt':
    case 'newer_version':
      return false
  }
}

/**
 * True if the key was too old to be sent again, or from the future, at some moment of the recovery.
 */
function isPastWindow({ wall, repeatsFor, clockSet }: LoggedCall, said: Recovered, sentAt: number): boolean {
  if (wall === undefined || repeatsFor === undefined || clockSet === true) return true
  return said.wall - sentAt > repeatsFor || wall - sentAt < -CLOCK_SKEW
}

/** The versions of an intent's record that were the newest at some moment between two others. */
function inForce(
  log: RunLog,
  { intent, key }: { readonly intent: string; readonly key?: string },
  from: number,
  to: number,
): LoggedRow[] {
  const replaced = new Map<string, LoggedRow>()
  const rows = rowsOf(log, intent)
  const found: LoggedRow[] = []
  for (let index = rows.length - 1; index >= 0; index--) {
    const row = rows[index]
    if (row === undefined) continue
    const next = replaced.get(row.id)
    replaced.set(row.id, row)
    const isOf = key === undefined || row.record?.key === key
    if (row.at <= to && (next === undefined || next.at > from) && isOf) found.push(row)
  }
  return found.reverse()
}

function intentOf({ intents }: RunLog, name: string | undefined): LoggedIntent | undefined {
  return intents.find((intent) => intent.name === name)
}

function creates(log: RunLog): LoggedCall[] {
  return log.calls.filter(({ kind }) => kind === 'create')
}

function wantedOf(log: RunLog, name: string | undefined): number {
  return intentOf(log, name)?.wanted ?? 1
}

/** True if only its payload names an order. */
function isAnonymous(log: RunLog, name: string | undefined): boolean {
  return intentOf(log, name)?.slots.some((slot) => slot.startsWith('anon:')) === true
}

function overlaps(one: LoggedCall, other: LoggedCall): boolean {
  const end = ({ diedAt, endedAt }: LoggedCall): number => endedAt ?? diedAt ?? Number.POSITIVE_INFINITY
  // A dead process writes nothing any more, whenever it died.
  if (one.died === true && one.endedAt === undefined && one.diedAt === undefined) return false
  const related = one.intent === undefined || one.intent === other.intent
  return related && one.at < end(other) && other.at < end(one)
}

/**
 * The rows of the last log by intent: all rules check one log before the next. Not a WeakMap, whose
 * values outlive their keys until the next full garbage collection.
 */
let known: { log: RunLog; count: number; rows: Map<string | undefined, LoggedRow[]> } | undefined

/** All versions of an intent's own rows, including forgotten ones. */
function rowsOf(log: RunLog, name: string | undefined): LoggedRow[] {
  if (known?.log !== log || known.count !== log.rows.length)
    known = { log, count: log.rows.length, rows: new Map() }
  const before = known.rows.get(name)
  if (before !== undefined) return before
  const slots = intentOf(log, name)?.slots ?? []
  const own = log.rows.filter(({ record }) => record !== undefined && slots.includes(record.slot))
  const ids = new Set(own.map(({ id }) => id))
  const rows = log.rows.filter(({ id }) => ids.has(id))
  known.rows.set(name, rows)
  return rows
}

function hasNoName({ slot }: { readonly slot: string }): boolean {
  return slot.startsWith('anon:')
}

/**
 * The rows that must be known forever. For anonymous orders, every stored row, because the next one
 * takes the row over.
 */
function keptRows(log: RunLog, name: string): LoggedRow[] {
  const rows = rowsOf(log, name)
  const newest = newestOf(rows, Number.POSITIVE_INFINITY)
  return [...newest, ...rows.filter(({ record }) => record !== undefined && hasNoName(record))]
}

/** True if the row of an anonymous order had the next one when its call ended. */
function isDisplaced(log: RunLog, call: LoggedCall, name: string, endedAt: number): boolean {
  const own = new Set(log.requests.filter((request) => request.call === call.id).map(({ key }) => key))
  return newestOf(rowsOf(log, name), endedAt).some(
    ({ open, record }) =>
      record !== undefined &&
      hasNoName(record) &&
      !own.has(record.key) &&
      (open || record.state === 'created'),
  )
}

/** The newest version of each row at a point in the order of events. */
function newestOf(rows: readonly LoggedRow[], at: number): LoggedRow[] {
  const newest = new Map<string, LoggedRow>()
  for (const row of rows) if (row.at <= at) newest.set(row.id, row)
  return [...newest.values()]
}
