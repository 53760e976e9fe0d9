import { isCustomerOrderingError } from '../../src/errors.ts'
import type { JournalRecord } from '../../src/orders/record.ts'
import type { AttentionReason, RecoveryOutcome } from '../../src/orders/recovery-outcome.ts'
import type { StoredRow } from '../../src/stores/store.ts'

/**
 * What happened in one run, of whatever harness: every entry has its place in one order of events (`at`), so that the
 * invariants can ask what was true when. A harness fills it through {@link RunRecorder}.
 */
export interface RunLog {
  readonly intents: readonly LoggedIntent[]
  readonly calls: readonly LoggedCall[]
  readonly requests: readonly LoggedRequest[]
  readonly reads: readonly LoggedRead[]
  readonly charges: readonly LoggedCharge[]
  readonly rows: readonly LoggedRow[]
  /** True if every applied write of a row is in `rows`; false where a store can only be looked at now and then. */
  readonly everyWrite: boolean
  /** True if every request is in `requests` or `reads`, with the call that sent it. */
  readonly everyRequest: boolean
  /** True if it is known of every call whether its caller's signal fired. */
  readonly everyAbort: boolean
  /** True if the service's list shows every order's reference, and its rows stay where they are. */
  readonly listsReferences: boolean
  /** True if more than one API key was in use. */
  readonly rotated: boolean
  /** True if faults had stopped, every process was gone, and one `recover()` ran to its end as the last thing. */
  readonly recovered: boolean
  /** True if processes stood still for a while in the middle of their work: what one sends then may be past what is stored. */
  readonly stopped: boolean
  /** How much longer than its time a call may take, on a machine that has much else to do, milliseconds. */
  readonly slowness: number
  /** Timers and listeners that were left when everything had ended. */
  readonly leftovers: number
  /** True if a clock jumped, so that nobody can tell by its clock what was first. */
  readonly clocksDiffer: boolean
  /** True if a store lost what it had acknowledged. */
  readonly lost: boolean
  /** True if processes had a store each. */
  readonly storesDiffer: boolean
  /** Orders in the service's list that no call of the run has made. */
  readonly otherOrders: number
  /** API keys that were used. */
  readonly secrets: readonly string[]
  /** Texts that leave the client for other places than the service: rows of the store, errors. */
  readonly printed: readonly string[]
}

/** One thing to buy. */
export interface LoggedIntent {
  readonly name: string
  /** Names of the records that stand for it. */
  readonly slots: readonly string[]
  /** How often the caller wants it; more than once only for anonymous orders that were deliberately repeated. */
  wanted: number
}

/** Whether the wallet was charged, as a caller was told. */
export interface Told {
  readonly charged: 'no' | 'yes' | 'unknown'
  readonly orderId?: string
  /** The error's code, where there was one. */
  readonly code?: string
}

/** What a failed call tells. Anything but one of our errors is a failure of the harness or a bug. */
export function toldBy(error: unknown): Told {
  if (!isCustomerOrderingError(error)) throw error
  const { charged, code, orderId } = error
  return { charged, code, ...(orderId === undefined ? {} : { orderId }) }
}

/** What a recovery said of one record. */
export interface Recovered {
  readonly intent: string
  readonly outcome: RecoveryOutcome['outcome']
  /** The record's key; empty if the record cannot be read. */
  readonly key: string
  readonly reason?: AttentionReason
  readonly orderId?: string
  /** What its error says of the wallet, where there is one. */
  readonly charged?: Told['charged']
  /** True if it says that the list was longer than a look-up reads. */
  readonly cut?: boolean
  /** The clock on the wall of the process that recovers, milliseconds. */
  readonly wall: number
  /** When it was said, in the order of events; at the latest when the recovery ended, where the harness knows no better. */
  readonly at?: number
}

/** A recovery's outcome as it is logged. */
export function recoveredOf(
  intent: string,
  { outcome, record, order, reason, error }: RecoveryOutcome,
  wall: number,
): Recovered {
  const orderId = order?.id ?? (outcome === 'created' ? record.order?.id : undefined)
  return {
    intent,
    outcome,
    key: record.key,
    ...(error?.code === 'unresolved_order' ? { cut: true } : {}),
    wall,
    ...(reason === undefined ? {} : { reason }),
    ...(orderId === undefined ? {} : { orderId }),
    ...(error === undefined ? {} : { charged: error.charged }),
  }
}

/** One public call. */
export interface LoggedCall {
  readonly id: number
  readonly kind: 'create' | 'enqueue' | 'recover' | 'resolve'
  /** Of all but `recover`. */
  readonly intent?: string
  /** Idempotency-Key that the caller gave, where the harness keeps it. */
  readonly idempotencyKey?: string
  /** What it asks for, in the words that tell one order from another (its metadata does not), where the harness keeps it. */
  readonly payload?: string
  /** Number of its process, where the harness keeps it. */
  readonly process?: number
  readonly at: number
  /** The time by the run's clock, milliseconds. */
  readonly time: number
  readonly totalTimeout: number
  readonly maxRetries: number
  /** The clock on the wall of its process when it began, milliseconds, where the harness keeps it. */
  readonly wall?: number
  /** Of `recover`, where the harness keeps it: for how long after its first send a key is sent again, milliseconds. */
  readonly repeatsFor?: number
  /** For how long after its first send a key may leave again, milliseconds, where the harness keeps it and there is a limit. */
  readonly sendsFor?: number
  /** True if its process's clock on the wall was set meanwhile. */
  clockSet?: boolean
  /** Absent while the call goes on, and for ever if its process died, unless it is known when that was. */
  endedAt?: number
  endedTime?: number
  died?: boolean
  /** When its process died, where the harness knows it. */
  diedAt?: number
  told?: Told
  recovered?: Recovered[]
  /** True if the store failed, hung or lost an answer during the call. */
  storeTrouble?: boolean
  /** When the caller's signal fired, where the harness keeps it and it did before the call's end. */
  abortedAt?: number
  /** True if it resolved, where it is an `enqueue()` or a `resolve()` of a harness that judges them. */
  succeeded?: boolean
  /** Of `resolve`, where the harness keeps it: the order that a person has found, or that it is given up. */
  readonly decision?: { readonly orderId?: string } | undefined
  /** True if a write of a call that had ended or died landed during this one. */
  disturbed?: boolean
}

/** One order request, as the service saw it. */
export interface LoggedRequest {
  readonly at: number
  readonly intent: string
  readonly key: string
  readonly body: string
  /** The clock on the wall of the process that sends it, milliseconds, where the harness keeps it. */
  readonly wall?: number
  /** The same clock when it surely had not looked yet whether it may send, where it may stand still after it has. */
  readonly awake?: number | undefined
  /** The time by the run's clock, milliseconds, where the harness keeps it. */
  readonly time?: number
  /** What the body asks for, as in {@link LoggedCall.payload}, where the harness keeps it. */
  readonly payload?: string
  /** The call that sent it, where that is known. */
  readonly call?: number
  /** True if it heard of another order, which says nothing of its own. */
  misled?: boolean
  /** Status of the answer, once there was one. */
  status?: number
  code?: string
  /** True if the answer reached the client whole. */
  heard?: boolean
  answeredAt?: number
  /** The time by the run's clock, milliseconds, where the harness keeps it. */
  answeredTime?: number
}

/** One request that only reads orders, as it left its process. */
export interface LoggedRead {
  readonly at: number
  /** Path and query. */
  readonly path: string
  /** The call that sent it, where that is known. */
  readonly call?: number
  /** True if a success reached the client whole. */
  answered?: boolean
}

/** One debit. */
export interface LoggedCharge {
  readonly at: number
  readonly intent: string
  readonly key: string
  readonly orderId: string
  /** When the request arrived that caused it. */
  readonly requestedAt: number
  readonly call?: number
}

/** One version of a row. */
export interface LoggedRow {
  readonly at: number
  readonly id: string
  readonly version: number
  readonly open: boolean
  /** Absent if the record was forgotten, or the row removed. */
  readonly record?: JournalRecord
}

/** Fills a {@link RunLog}. */
export class RunRecorder implements RunLog {
  readonly intents: LoggedIntent[] = []
  readonly calls: LoggedCall[] = []
  readonly requests: LoggedRequest[] = []
  readonly reads: LoggedRead[] = []
  readonly charges: LoggedCharge[] = []
  readonly rows: LoggedRow[] = []
  everyWrite = true
  everyRequest = true
  everyAbort = false
  listsReferences = false
  rotated = false
  recovered = false
  stopped = false
  slowness = 0
  leftovers = 0
  clocksDiffer = false
  lost = false
  storesDiffer = false
  otherOrders = 0
  readonly secrets: string[] = []
  readonly printed: string[] = []
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

  /** A recovery says what became of a record. */
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
    Object.assign(request, {
      status,
      heard,
      answeredAt: this.next(),
      ...(code === undefined ? {} : { code }),
    })
  }

  charge(charge: Omit<LoggedCharge, 'at'>): void {
    this.charges.push({ ...charge, at: this.next() })
  }

  /** A row was removed: the next one under its name begins with the first version. */
  removed(id: string): void {
    this.rows.push({ at: this.next(), id, version: 0, open: false })
  }

  /** A store has these rows, and nothing else of what was ever written. */
  lose(rows: readonly StoredRow[]): void {
    this.lost = true
    for (const id of new Set(this.rows.map((row) => row.id))) this.removed(id)
    for (const row of rows) this.row(row)
  }

  /** A row was written. Its text must be plain, also where it is marked as sealed. */
  row(row: StoredRow): void {
    const { id, version, open, createdAt, updatedAt } = row
    const logged = { at: this.next(), id, version, open }
    const data = row.data.replace(/^sealed:/, '')
    if (!data.startsWith('{')) {
      this.rows.push(logged)
      return
    }
    const content = JSON.parse(data) as JournalRecord
    this.rows.push({ ...logged, record: { ...content, version, createdAt, updatedAt } })
  }
}
