/**
 * Merges the logs of the processes, the service and the parent into the order of events that the
 * invariants need. All logs use the same clock. Only the time of a row must be inferred: between a
 * write and its confirmation, a process may be paused or killed while others already see the row.
 * So a row counts as written when any log first shows it or a later version.
 */

import { defined } from '../../../src/defined.ts'
import type { SandboxCharge, SandboxRequest } from '../../../src/sandbox/index.ts'
import type { StoredRow } from '../../../src/stores/store.ts'
import {
  type LoggedCall,
  type LoggedRequest,
  type Recovered,
  RunRecorder,
  type Told,
} from '../../support/run-log.ts'
import { CLOCK_SKEW } from '../core.ts'
import { CALL_HEADER, type FleetEvent, type Limits } from './events.ts'

export interface Life {
  readonly name: string
  readonly events: readonly FleetEvent[]
  readonly endedAt: number
  readonly killed: boolean
  readonly stops: readonly { readonly from: number; readonly to: number }[]
  readonly limits: Limits
}

/** A response whose status and headers were sent. */
export interface Answered {
  readonly at: number
  readonly status: number
  readonly code?: string
  readonly requestId: string
  readonly whole: boolean
}

export interface Records {
  readonly references: readonly string[]
  readonly lives: readonly Life[]
  readonly requests: readonly SandboxRequest[]
  /** By the number of the request. */
  readonly answers: ReadonlyMap<number, Answered>
  readonly ledger: readonly SandboxCharge[]
  readonly rows: readonly StoredRow[]
}

/** How much longer than its time a call may take on a busy machine. */
const SLOWNESS = 30_000
/** Milliseconds after its deadline within which a call may still read its record. */
const LAST_LOOK = 500
const LONGEST_HISTORY = 150

function referenceOf(body: string): string {
  const { metadata } = JSON.parse(body) as { readonly metadata?: { readonly externalOrderId?: string } }
  return metadata?.externalOrderId ?? ''
}

/**
 * When each version of a row existed, the oldest first. Two different rows of one version are both
 * listed.
 */
function writtenRows(records: Records): Map<string, { readonly row: StoredRow; readonly at: number }> {
  const known = new Map<string, { readonly row: StoredRow; readonly at: number }>()
  const add = (row: StoredRow, at: number): void => {
    if (at < (known.get(nameOf(row))?.at ?? Number.POSITIVE_INFINITY)) known.set(nameOf(row), { row, at })
  }
  for (const { events } of records.lives)
    for (const event of events) if (event.event === 'wrote' || event.event === 'saw') add(event.row, event.at)
  for (const row of records.rows) add(row, Number.MAX_VALUE)

  const newestFirst = [...known.values()].sort(
    (one, other) => other.row.version - one.row.version || other.at - one.at,
  )
  const earliest = new Map<string, number>()
  const written = newestFirst.map(({ row, at }) => {
    const time = Math.min(at, earliest.get(row.id) ?? Number.MAX_VALUE)
    earliest.set(row.id, time)
    return [nameOf(row), { row, at: time }] as const
  })
  return new Map(written.reverse())
}

function nameOf({ id, version, data }: StoredRow): string {
  return `${id} ${version} ${data}`
}

/** A call, from its process's log. */
interface Call {
  readonly kind: 'create' | 'recover' | 'resolve'
  readonly reference: string | undefined
  readonly life: Life
  /** The earliest and the latest possible time by the client's own clock. */
  readonly announcedAt: number
  beganAt: number
  /** The wall clock before it began. */
  wall: number
  ended?: { readonly at: number; readonly told?: Told; readonly recovered?: Recovered[] }
  /** Rows that it started to write. */
  readonly rows: StoredRow[]
  /** When it first read or stored that the order exists. */
  knewAt: number
  lastAsked: number
  storeFailed: boolean
}

function callsOf(lives: readonly Life[]): Map<string, Call> {
  const calls = new Map<string, Call>()
  for (const life of lives) {
    for (const event of life.events) {
      if (event.event === 'began') {
        const { at, kind, reference } = event
        calls.set(event.call, {
          ...{ kind, reference, life, announcedAt: at, beganAt: at, wall: event.wall },
          ...{ rows: [], knewAt: Number.POSITIVE_INFINITY, lastAsked: at, storeFailed: false },
        })
        continue
      }
      const call = 'call' in event && event.call !== undefined ? calls.get(event.call) : undefined
      if (call === undefined) continue
      const { at } = event
      if (event.event === 'called') Object.assign(call, { beganAt: at, wall: event.since })
      else if (event.event === 'told') {
        call.ended = { at, told: event.told }
        call.storeFailed ||= event.waiting
      } else if (event.event === 'recovered') call.ended = { at, recovered: [...event.recovered] }
      else if (event.event === 'resolved') call.ended = { at }
      else if (event.event === 'store_failed' || event.event === 'unstored') call.storeFailed = true
      else if (event.event === 'asked') call.lastAsked = at
      else if (event.event === 'writing') call.rows.push(event.row)
      else if ((event.event === 'saw' || event.event === 'wrote') && event.row.state === 'created')
        call.knewAt = Math.min(call.knewAt, at)
    }
  }
  return calls
}

/** The run in the form that the invariants read. */
export function runLogOf(records: Records): RunRecorder {
  const log = new RunRecorder()
  log.stopped = true
  log.slowness = SLOWNESS
  log.recovered = true
  for (const reference of records.references) log.intent(reference, [`ref:${reference}`])
  const entries: { readonly at: number; readonly record: () => void }[] = []
  const add = (at: number, record: () => void): void => void entries.push({ at, record })
  const rows = writtenRows(records)
  for (const { row, at } of rows.values()) add(at, () => log.row(row))

  const logged = new Map<string, LoggedCall>()
  const calls = callsOf(records.lives)
  const troubled = new Set<string | undefined>()
  for (const { reference, storeFailed } of calls.values()) if (storeFailed) troubled.add(reference)
  for (const [name, call] of calls) {
    const { kind, reference, life, beganAt, wall } = call
    const { timeout, totalTimeout, maxRetries, safeRetryWindow } = life.limits
    const sendsFor = safeRetryWindow - CLOCK_SKEW
    const facts = {
      ...{ kind, time: beganAt, wall, totalTimeout, maxRetries, sendsFor, attempt: timeout },
      repeatsFor: sendsFor - timeout,
      ...defined({ intent: reference }),
      // A result that a call could not store is stored later by its process, during other calls.
      ...(troubled.has(reference) ? { storeTrouble: true } : {}),
    }
    add(beganAt, () => logged.set(name, log.call(facts)))
    const died = call.ended === undefined && life.killed
    if (call.ended === undefined && !died) continue
    const until = call.ended?.at ?? life.endedAt
    const took = until - beganAt - stoodStill(life, beganAt, until)
    add(died ? life.endedAt : endOf(call, rows), () => {
      const found = logged.get(name)
      if (found === undefined) throw new Error(`${name} ended before it began`)
      const { told, recovered } = call.ended ?? {}
      log.ended(found, beganAt + took, defined({ told, recovered }))
      if (died) found.died = true
      if (overslept(call)) found.overslept = true
    })
  }

  const requests = new Map<SandboxRequest, LoggedRequest>()
  const heard = new Set<string>()
  for (const { events } of records.lives)
    for (const event of events) if (event.event === 'heard') heard.add(event.requestId)
  const sendings = records.lives.flatMap(sendingsOf)
  for (const request of records.requests) {
    const { operation, headers, path, body, at, number, idempotencyKey } = request
    const { [CALL_HEADER]: call } = headers
    const senderId = () => defined({ call: logged.get(call ?? '')?.id })
    if ((operation === 'listOrders' || operation === 'retrieveOrder') && call !== undefined)
      add(at, () => log.read({ path, ...senderId() }))
    if (operation !== 'createOrder') continue
    const key = idempotencyKey ?? ''
    const { wall, awake } =
      sendings.findLast((each) => each.call === call && each.key === key && each.at <= at) ?? {}
    const began = calls.get(call ?? '')
    // By the wall clock, too: two clocks that differ by a part of a millisecond make a call look late.
    const awakeAt = began && awake && began.beganAt + (awake - began.wall)
    add(at, () => {
      const facts = { intent: referenceOf(body), key, body, ...defined({ wall, awake, awakeAt }) }
      requests.set(request, log.request({ ...facts, ...senderId() }))
    })
    const answer = records.answers.get(number)
    if (answer === undefined) continue
    add(answer.at, () => {
      const arrived = requests.get(request)
      if (arrived === undefined) throw new Error('an answer came before its request')
      const { status, code, requestId, whole } = answer
      log.answered(arrived, status, code, whole && heard.has(requestId))
    })
  }
  for (const { at, idempotencyKey: key, orderId, externalOrderId } of records.ledger)
    add(at, () => {
      const cause = [...requests].findLast(
        ([request]) => request.idempotencyKey === key && request.charged && request.at <= at,
      )?.[1]
      const sender = defined({ call: cause?.call })
      log.charge({ intent: externalOrderId ?? '', key, orderId, requestedAt: cause?.at ?? 0, ...sender })
    })
  entries.sort((one, other) => one.at - other.at)
  for (const { record } of entries) record()
  return log
}

/**
 * The request that a process was about to send, and a time before its last check whether it may. In
 * between, the process may have been stopped.
 */
function sendingsOf({ events }: Life) {
  const last = new Map<string | undefined, FleetEvent>()
  return events.flatMap((event) => {
    const call = 'call' in event ? event.call : undefined
    const { wall: awake } = last.get(call) ?? event
    last.set(call, event)
    if (event.event !== 'sending') return []
    return { at: event.at, call, key: event.key, wall: event.wall, awake }
  })
}

/**
 * The time that a result is about. `'no'` is about the record as the call closed it: another caller
 * may order the same while the process is paused before it reports.
 */
function endOf(
  { ended, rows: own, lastAsked, beganAt }: Call,
  rows: ReadonlyMap<string, { readonly at: number }>,
): number {
  if (ended?.told?.charged !== 'no') return ended?.at ?? beganAt
  const written = own.flatMap((row) => rows.get(nameOf(row))?.at ?? [])
  return written.length === 0 ? Math.max(beganAt, lastAsked) : Math.max(beganAt, ...written) + 5e-7
}

/**
 * See {@link LoggedCall.overslept}. The parent's log must show that the process was stopped at the
 * deadline, and the process's own log that it did nothing until the time for a last read was over.
 */
function overslept({ ended, life, announcedAt, beganAt, knewAt }: Call): boolean {
  const { totalTimeout } = life.limits
  return life.stops.some(({ from, to }) => {
    // If the client read its clock only after the stop, its deadline was later.
    const isEarlier = announcedAt < from && ended !== undefined && ended.at < to + totalTimeout
    const earliest = announcedAt + totalTimeout
    const latest = Math.min(beganAt, from) + totalTimeout
    const awakeAt = life.events.find(({ at }) => at > from)?.at ?? Number.POSITIVE_INFINITY
    return isEarlier && from <= earliest && to >= latest && awakeAt >= latest + LAST_LOOK && knewAt > from
  })
}

function stoodStill({ stops }: Life, from: number, to: number): number {
  return stops.reduce((sum, stop) => sum + Math.max(0, Math.min(to, stop.to) - Math.max(from, stop.from)), 0)
}

/**
 * Requests sent after the sender's claim had ended, so that other processes may have worked on the
 * order. Only if the log proves that the sender read the clock after that: it wrote a line before
 * it sent.
 */
export function sentAfterClaim({ lives }: Records): string[] {
  const broken: string[] = []
  for (const { events } of lives) {
    /** By call: the end of its newest claim, and the last time it was awake, both by the wall clock. */
    const claims = new Map<
      string,
      { readonly key: unknown; readonly name: unknown; until: number; awake: number }
    >()
    for (const event of events) {
      const call = 'call' in event ? event.call : undefined
      if (call === undefined) continue
      const claim = claims.get(call)
      if (event.event === 'sending') {
        // A recovery also reaches orders that it does not claim.
        if (claim !== undefined && claim.key === event.key && claim.awake > claim.until)
          broken.push(
            `${call} sent ${claim.name} ${Math.round(claim.awake - claim.until)} ms after its claim`,
          )
      } else if (event.event === 'writing') {
        const { busyUntil: until, key, externalOrderId: name } = readData(event.row)
        if (typeof until === 'number') claims.set(call, { key, name, until, awake: event.wall })
        else claims.delete(call)
      } else if (claim !== undefined) claim.awake = event.wall
    }
  }
  return broken
}

/** All that the logs say about an order, for a person who looks for the cause. */
export function historyOf(records: Records, reference: string): string[] {
  const calls = callsOf(records.lives)
  const lines = [
    ...records.lives.flatMap(({ name, events, stops, endedAt, killed }) => [
      ...stops.map(({ from, to }) => [from, `${name} is stopped for ${Math.round(to - from)} ms`] as const),
      ...(killed ? [[endedAt, `${name} is killed`] as const] : []),
      ...events.flatMap((event) => {
        // Rows that it read, which other processes wrote.
        if (event.event === 'asked' || event.event === 'saw' || event.event === 'heard') return []
        const call = 'call' in event ? calls.get(event.call ?? '') : undefined
        const isAbout =
          'row' in event
            ? readData(event.row)['externalOrderId'] === reference
            : call?.reference === reference
        return isAbout ? [[event.at, JSON.stringify(event)] as const] : []
      }),
    ]),
    ...records.requests.flatMap(({ operation, at, body, headers, idempotencyKey, charged, number }) => {
      if (operation !== 'createOrder' || referenceOf(body) !== reference) return []
      const sent = {
        call: headers[CALL_HEADER],
        idempotencyKey,
        charged,
        answer: records.answers.get(number),
      }
      return [[at, JSON.stringify(sent)] as const]
    }),
    ...records.ledger.flatMap((charge) =>
      charge.externalOrderId === reference ? [[charge.at, `CHARGE ${JSON.stringify(charge)}`] as const] : [],
    ),
  ].sort(([one], [other]) => one - other)
  const [[start] = [0]] = lines
  const told = lines.map(([at, text]) => `${(at - start).toFixed(3).padStart(10)} ms  ${text}`)
  const left = told.length - LONGEST_HISTORY
  return left <= 0 ? told : [...told.slice(0, LONGEST_HISTORY), `and ${left} lines more`]
}

function readData({ data }: StoredRow): Readonly<Record<string, unknown>> {
  return data.startsWith('{') ? (JSON.parse(data) as Readonly<Record<string, unknown>>) : {}
}
