/**
 * The states of the model checker: an order's rows, a service, two processes, and the messages
 * between them.
 */
import type { Command, Intent, JournalRecord, RecordContent, Rejection } from './core.ts'

export const MINUTE = 60_000
/** Durations of a call and of an attempt. */
export const TOTAL: number = 2 * MINUTE
export const ATTEMPT: number = MINUTE / 2
export const WINDOW: number = 20 * MINUTE
/** The service forgets a key soon after the window. */
export const FORGETS: number = 21 * MINUTE
export const API_KEYS = ['secret-one', 'secret-two'] as const

export interface Call {
  readonly command: Command
  /** The process that makes the call. Default: either. */
  readonly by?: number
  /** For `create`. Default: `a`. */
  readonly payload?: 'a' | 'b'
  /** For `create`: the caller's key in addition to the reference. */
  readonly key?: 'k' | 'l'
  /** For `create`: the order does not fit the given service. */
  readonly misfit?: true
  /** For `recover`: repeats everything, and takes over claims. */
  readonly all?: true
  readonly takesOver?: true
  /** For `resolve`: an order id that does not exist. */
  readonly otherOrder?: true
}

/** Possible faults. Each costs one of the faults of a setting. */
export type Fault =
  | 'a process is killed'
  | 'a write comes late'
  | 'a call is aborted'
  | 'a response is lost'
  | 'a response cannot be read'
  | 'the service fails'
  | 'nothing is sent'

/** Possible events outside the calls. Each costs one of the passes of a setting. */
export type Pass =
  | '16 minutes pass'
  | '25 minutes pass'
  | 'the clock goes back'
  | 'the wallet is filled'
  | 'the API key changes'
  | 'the row is damaged'

/** One kind of order with one kind of service, and the number of events. */
export interface Setting {
  readonly name: string
  readonly order: 'ref:r' | 'key:k' | 'anon'
  readonly calls: readonly Call[]
  readonly faults: readonly Fault[]
  readonly passes: readonly Pass[]
  readonly most: { readonly calls: number; readonly faults: number; readonly passes: number }
  /** 1 means that calls run one after the other. */
  readonly processes: 1 | 2
  /** True if the processes are calls of one client. */
  readonly oneClient?: true
  readonly unshared?: true
  readonly funds: boolean
  readonly remembersRefusals: boolean
  /** True if the service has another order under the key. */
  readonly taken?: true
  /** True for a setting that is too large for `npm test`. */
  readonly wide?: true
}

export interface Row {
  readonly version: number
  readonly record: JournalRecord | undefined
  readonly damaged: boolean
}

export interface Request {
  readonly by: number
  /** The key with its API key, as the service sees it. */
  readonly key: string
  readonly body: string
}

/** A write that its process no longer waits for. */
export interface Late {
  readonly store: number
  readonly base: number
  readonly row: Row
}

export interface Process {
  readonly call: Call
  readonly intent: Intent | undefined
  readonly at: 'reads' | 'writes' | 'sends' | 'waits' | 'settles' | 'moves' | 'leaves' | 'fences'
  /** The wall clock at the beginning, and the end by the monotonic clock. */
  readonly began: number
  readonly ends: number
  readonly reads: number
  readonly sent: number
  readonly outwaited: boolean
  /** The anonymous order that this call requests again. */
  readonly asked: JournalRecord | undefined
  /** The stored row before this call was made. */
  readonly older: JournalRecord | undefined
  readonly base: number
  readonly content: RecordContent | 'emptied' | undefined
  readonly mine: JournalRecord | undefined
  readonly apiKey: number
  readonly ambiguous: boolean
  readonly proven: boolean
  readonly unused: boolean
  readonly earlier: Rejection | undefined
  readonly retries: number
  /** True if the key may be sent past its window. */
  readonly overdue: boolean
  readonly tells: 'no' | 'yes' | 'unknown' | undefined
  /** The keys that a person's decision gives up: those sent before it. */
  readonly gives: readonly string[]
}

export interface Bought {
  readonly key: string
  readonly body: string
}

export interface World {
  readonly now: number
  /** The monotonic clock. */
  readonly clock: number
  readonly rows: readonly Row[]
  readonly apiKey: number
  readonly keys: Readonly<
    Record<string, { readonly body: string; readonly bought: boolean; readonly at: number }>
  >
  readonly funds: boolean
  readonly bought: readonly Bought[]
  /** The number of orders that callers requested, or that people allowed to buy again. */
  readonly allowed: number
  readonly processes: readonly (Process | undefined)[]
  readonly wire: readonly Request[]
  readonly late: Late | undefined
  /** Keys whose last request has no definite refusal yet. */
  readonly doubtful: readonly string[]
  /** Keys of orders that a caller received, or that a person abandoned. */
  readonly heard: readonly string[]
  /** Keys that a person abandoned, and that the next call therefore does not use. */
  readonly abandoned: readonly string[]
  /** True after a call reported 'no', until the next call. */
  readonly no: boolean
  readonly drawn: number
  readonly calls: number
  readonly faults: number
  readonly passes: number
}

export class Broken extends Error {}

export function broken(what: string): never {
  throw new Broken(what)
}

const shapes = new Map<string, number>()
const known = new WeakMap<object, number>()

/**
 * Returns the same number for equal values, so that states are compared without serializing them.
 */
export function numberOf(value: object): number {
  const before = known.get(value)
  if (before !== undefined) return before
  let shape = Array.isArray(value) ? '[' : '{'
  for (const [name, part] of Object.entries(value)) {
    if (part === undefined) continue
    shape +=
      typeof part === 'object' && part !== null ? `${name}:#${numberOf(part)},` : `${name}:${String(part)},`
  }
  const number = shapes.get(shape) ?? shapes.size
  shapes.set(shape, number)
  known.set(value, number)
  return number
}
