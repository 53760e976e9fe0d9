import { defined } from '../../src/defined.ts'
import {
  type AttentionReason,
  isCustomerOrderingError,
  type RecoveryOutcome,
  type StoredRow,
} from '../../src/index.ts'
import { recordOf, type StoredRecord } from '../harness/core.ts'

/**
 * The log of one run of any harness. Every entry has its place in one order of events (`at`), so
 * that the invariants can check what was true at a time.
 */
class RunData {
  readonly intents: LoggedIntent[] = []
  readonly calls: LoggedCall[] = []
  readonly requests: LoggedRequest[] = []
  /** Attempts over a transport that may send a request again, whether or not anything has left. */
  readonly hidden: LoggedAttempt[] = []
  readonly reads: LoggedRead[] = []
  readonly charges: LoggedCharge[] = []
  readonly rows: LoggedRow[] = []
  /** True if every applied write of a row is in `rows`, not only what was read now and then. */
  everyWrite = true
  /** True if `requests` or `reads` contains every request, with the call that sent it. */
  everyRequest = true
  /** True if it is known for every call whether its caller's signal fired. */
  everyAbort = false
  /** True if the service's list shows every order's reference, and its rows keep their positions. */
  listsReferences = false
  /** True if more than one API key was in use. */
  rotated = false
  /** True if faults had stopped, every process had ended, and one last `recover()` ran to its end. */
  recovered = false
  /** True if processes were paused, so that they may send what differs from the stored records. */
  stopped = false
  /** How much longer than its time a call may take on a busy machine, in milliseconds. */
  slowness = 0
  /** Timers and listeners left at the end. */
  leftovers = 0
  /** True if a clock jumped, so that clocks do not show which event was first. */
  clocksDiffer = false
  /** True if a store lost acknowledged rows. */
  lost = false
  /** True if each process had its own store. */
  storesDiffer = false
  /** Orders in the service's list that no call of the run has created. */
  otherOrders = 0
  /** API keys that were used. */
  readonly secrets: string[] = []
  /** Texts that leave the client for places other than the service: rows of the store, errors. */
  readonly printed: string[] = []
}

/** What the invariants read. */
export type RunLog = {
  readonly [Name in keyof RunData]: RunData[Name] extends (infer Entry)[] ? readonly Entry[] : RunData[Name]
}

export interface LoggedIntent {
  readonly name: string
  /** Names of its records. */
  readonly slots: readonly string[]
  /** How often the caller wants it. More than once only for repeated anonymous orders. */
  wanted: number
}

/** The reported state of the charge. */
export interface Told {
  readonly charged: 'no' | 'yes' | 'unknown'
  readonly orderId?: string
  readonly code?: string
}

/** What a record says of the charge. */
export function chargedBy(record: Pick<StoredRecord, 'state'> | undefined): Told['charged'] {
  if (record?.state === 'created') return 'yes'
  return record?.state === 'open' ? 'unknown' : 'no'
}

/** The report of a failed call. An error of another package is a failure of the harness or a bug. */
export function toldBy(error: unknown): Told {
  if (!isCustomerOrderingError(error)) throw error
  const { charged, code, orderId } = error
  return { charged, code, ...defined({ orderId }) }
}

/** The report of a recovery about one record. What a harness does not log is absent. */
export interface Recovered {
  readonly intent: string
  readonly outcome: RecoveryOutcome['outcome']
  /** The record's key. Empty if the record is unreadable. */
  readonly key: string
  readonly reason?: AttentionReason
  readonly orderId?: string
  /** The state of the charge in its error, if any. */
  readonly charged?: Told['charged']
  /** True if it reports that the list was longer than a look-up reads. */
  readonly cut?: boolean
  /** The wall clock of the recovering process, in milliseconds. */
  readonly wall: number
  /** The time of the report in the order of events, or the end of the recovery. */
  readonly at?: number
}

/** Converts a recovery's outcome to its log entry. */
export function recoveredOf(
  intent: string,
  { outcome, record, order, reason, error }: RecoveryOutcome,
  wall: number,
): Recovered {
  const orderId = order?.id ?? (outcome === 'created' ? record.order?.id : undefined)
  const cut = error?.code === 'unresolved_order' || undefined
  return {
    ...{ intent, outcome, key: record.key, wall },
    ...defined({ cut, reason, orderId, charged: error?.charged }),
  }
}

/** One public call. Times are milliseconds. What a harness does not log is absent. */
export interface LoggedCall {
  readonly id: number
  readonly kind: 'create' | 'recover' | 'resolve'
  /** Present for every call except `recover`. */
  readonly intent?: string
  readonly idempotencyKey?: string
  /** The payload without metadata, as text. */
  readonly payload?: string
  readonly process?: number
  readonly at: number
  /** The time of the run's clock. */
  readonly time: number
  readonly totalTimeout: number
  readonly maxRetries: number
  /** The wall clock of its process at its beginning. */
  readonly wall?: number
  /** For `recover`: how long after its first send it sends a key again. */
  readonly repeatsFor?: number
  /** How long after its first send a key may be sent again. */
  readonly sendsFor?: number
  /** The timeout of an attempt, which must end within {@link sendsFor}. */
  readonly attempt?: number
  /** True if its process's wall clock was set meanwhile. */
  clockSet?: boolean
  /** Absent while the call runs, and forever if its process died, unless the time is known. */
  endedAt?: number
  endedTime?: number
  died?: boolean
  diedAt?: number
  told?: Told
  recovered?: Recovered[]
  /** True if the store failed, hung or lost a response during the call. */
  storeTrouble?: boolean
  /** When the caller's signal fired, if before the call's end. */
  abortedAt?: number
  /** True if a `resolve()` resolved. */
  succeeded?: boolean
  /** For `resolve`: the order that a person has found, or that it is abandoned. */
  readonly decision?: { readonly orderId?: string; readonly isOwn?: boolean } | undefined
  /** True if a write of a call that had ended or died was applied during this one. */
  disturbed?: boolean
  /**
   * True if its process was stopped at the call's deadline and did nothing until the call had no
   * time left to read its record, and the call had not read before that the order exists.
   */
  overslept?: boolean
}

/** One order request as received by the service. What a harness does not log is absent. */
export interface LoggedRequest {
  readonly at: number
  readonly intent: string
  readonly key: string
  readonly body: string
  /** The wall clock of the sending process. */
  readonly wall?: number
  /** The same before the check whether the call may send, if the process may pause after it. */
  readonly awake?: number | undefined
  /** The run's clock at that time. */
  readonly awakeAt?: number | undefined
  /** The time of the run's clock. */
  readonly time?: number
  /** The body's payload, as in {@link LoggedCall.payload}. */
  readonly payload?: string
  readonly call?: number
  /** True if something sent it twice, and its process heard only the second response. */
  resent?: boolean
  /** True if it received another order, which proves nothing about its own. */
  misled?: boolean
  /** Status of the response, once received. */
  status?: number
  code?: string
  /** True if the client received the complete response. */
  heard?: boolean
  /** True if its process has begun to store that no call sends the order. */
  givenUp?: boolean
  answeredAt?: number
  answeredTime?: number
}

/** One attempt to send an order, even if its process knows that nothing has left. */
export interface LoggedAttempt extends Required<Pick<LoggedRequest, 'key' | 'wall'>> {
  readonly call?: number
}

/** One read request for orders, as sent. */
export interface LoggedRead extends Pick<LoggedRequest, 'at' | 'call'> {
  readonly path: string
  /** True if the client received a complete success. */
  answered?: boolean
}

export interface LoggedCharge {
  readonly at: number
  readonly intent: string
  readonly key: string
  readonly orderId: string
  /** When the request that caused it arrived. */
  readonly requestedAt: number
  readonly call?: number
}

/** One version of a row. */
export interface LoggedRow {
  readonly at: number
  readonly id: string
  readonly version: number
  readonly open: boolean
  /** Absent if the record was forgotten or the row removed. */
  readonly record?: StoredRecord
}

/** A log that a harness fills. */
export class RunRecorder extends RunData {
  #at = 0

  /** The next place in the order of events. */
  next(): number {
    return ++this.#at
  }

  intent(name: string, slots: readonly string[]): LoggedIntent {
    const intent = { name, slots, wanted: 1 }
    this.intents.push(intent)
    return intent
  }

  call(call: Omit<LoggedCall, 'id' | 'at'>): LoggedCall {
    const logged = { ...call, id: this.calls.length, at: this.next() }
    this.calls.push(logged)
    return logged
  }

  ended(call: LoggedCall, time: number, end: Pick<LoggedCall, 'told' | 'recovered' | 'succeeded'>): void {
    Object.assign(call, { endedAt: this.next(), endedTime: time, ...end })
  }

  /** Logs a recovery's report about a record. */
  said(call: LoggedCall, recovered: Omit<Recovered, 'at'>): void {
    call.recovered ??= []
    call.recovered.push({ ...recovered, at: this.next() })
  }

  read(read: Omit<LoggedRead, 'at'>): LoggedRead {
    const logged = { ...read, at: this.next() }
    this.reads.push(logged)
    return logged
  }

  request(request: Omit<LoggedRequest, 'at'>): LoggedRequest {
    const logged = { ...request, at: this.next() }
    this.requests.push(logged)
    return logged
  }

  answered(request: LoggedRequest, status: number, code: string | undefined, heard: boolean): void {
    Object.assign(request, { status, heard, answeredAt: this.next(), ...defined({ code }) })
  }

  charge(charge: Omit<LoggedCharge, 'at'>): void {
    this.charges.push({ ...charge, at: this.next() })
  }

  /** Logs that a row was removed. The next row with its id begins with version 1. */
  removed(id: string): void {
    this.rows.push({ at: this.next(), id, version: 0, open: false })
  }

  /** Logs that a store has exactly these rows. */
  lose(rows: readonly StoredRow[]): void {
    this.lost = true
    for (const id of new Set(this.rows.map((row) => row.id))) this.removed(id)
    for (const row of rows) this.row(row)
  }

  /** Logs that a row was written. Its text must be plain, even if it is marked as sealed. */
  row(row: StoredRow): void {
    const { id, version, open } = row
    const record = recordOf(row)
    this.rows.push({ at: this.next(), id, version, open, ...(record && { record }) })
  }
}
