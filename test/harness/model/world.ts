/** The states that the model checker walks through: an order's rows, a service, two processes, and what is between them. */
import type { Intent } from '../../../src/orders/intent.ts'
import type { JournalRecord, RecordContent, Rejection } from '../../../src/orders/record.ts'
import type { Command } from '../../../src/orders/rules.ts'

export const MINUTE = 60_000
/** Of a whole call, and of one attempt. */
export const TOTAL: number = 2 * MINUTE
export const ATTEMPT: number = MINUTE / 2
export const WINDOW: number = 20 * MINUTE
/** The service forgets a key soon after the window. */
export const FORGETS: number = 21 * MINUTE
export const API_KEYS = ['secret-one', 'secret-two'] as const

/** What a process is called for. */
export interface Call {
  readonly command: Command
  /** The process that makes it; default any. */
  readonly by?: number
  /** Of `create` and `enqueue`; default `a`. */
  readonly payload?: 'a' | 'b'
  /** Of `create` and `enqueue`: the key that the caller gives beside the reference. */
  readonly key?: 'k' | 'l'
  /** Of `create` and `enqueue`: the order does not fit the service that is given with it. */
  readonly misfit?: true
  /** Of `recover`: repeats all; claims what a call holds. */
  readonly all?: true
  readonly takesOver?: true
  /** Of `resolve`: id of an order that never was. */
  readonly otherOrder?: true
}

/** What may go wrong. Each costs one of the faults of a setting. */
export type Fault =
  | 'a process is killed'
  | 'a write comes late'
  | 'a call is aborted'
  | 'a response is lost'
  | 'a response cannot be read'
  | 'the service fails'
  | 'nothing is sent'

/** What may happen beside the calls. Each costs one of the passes of a setting. */
export type Pass =
  | '16 minutes pass'
  | '25 minutes pass'
  | 'the clock goes back'
  | 'the wallet is filled'
  | 'the API key changes'
  | 'the row is damaged'
  | 'the store is restored'

/** One kind of order over one kind of service, and how much may happen. */
export interface Setting {
  readonly name: string
  readonly order: 'ref:r' | 'key:k' | 'anon'
  readonly calls: readonly Call[]
  readonly faults: readonly Fault[]
  readonly passes: readonly Pass[]
  readonly most: { readonly calls: number; readonly faults: number; readonly passes: number }
  /** 1: calls one after the other. */
  readonly processes: 1 | 2
  /** True if the processes are calls of one client. */
  readonly oneClient?: true
  /** True if each process has a store of its own. */
  readonly unshared?: true
  readonly funds: boolean
  readonly remembersRefusals: boolean
  /** True if the service has another order under the key. */
  readonly taken?: true
  /** True for one that is too large for `npm test`. */
  readonly wide?: true
}

export interface Row {
  readonly version: number
  readonly record: JournalRecord | undefined
  readonly damaged: boolean
}

/** A request that has left its process. */
export interface Request {
  readonly by: number
  /** As the service knows it: with the API key that it belongs to. */
  readonly key: string
  readonly body: string
}

/** A write that its process no longer waits for. */
export interface Late {
  readonly store: number
  readonly base: number
  readonly row: Row
}

/** A call at work. */
export interface Process {
  readonly call: Call
  readonly intent: Intent | undefined
  readonly at: 'reads' | 'writes' | 'sends' | 'waits' | 'settles' | 'moves' | 'leaves' | 'fences'
  /** Wall clock at the begin, and end by the clock that nobody sets. */
  readonly began: number
  readonly ends: number
  readonly reads: number
  readonly sent: number
  readonly outwaited: boolean
  readonly notListed: boolean
  /** The order without a name that this call asks for again. */
  readonly asked: JournalRecord | undefined
  /** What was stored before this call was made. */
  readonly older: JournalRecord | undefined
  readonly base: number
  readonly content: RecordContent | 'emptied' | undefined
  readonly mine: JournalRecord | undefined
  readonly apiKey: number
  readonly ambiguous: boolean
  readonly proven: boolean
  readonly unused: boolean
  readonly queued: boolean
  readonly earlier: Rejection | undefined
  readonly retries: number
  /** True if the key may be sent past its window. */
  readonly overdue: boolean
  readonly tells: 'no' | 'yes' | 'unknown' | undefined
  /** What a person's decision gives up: keys that were sent when it was made. */
  readonly gives: readonly string[]
}

/** An order that the service made. */
export interface Bought {
  readonly key: string
  readonly body: string
}

export interface World {
  readonly now: number
  /** The clock that nobody sets. */
  readonly clock: number
  readonly rows: readonly Row[]
  /** What a backup has of the row. */
  readonly backup: Row | undefined
  readonly apiKey: number
  readonly keys: Readonly<
    Record<string, { readonly body: string; readonly bought: boolean; readonly at: number }>
  >
  readonly funds: boolean
  readonly bought: readonly Bought[]
  /** How many orders callers have asked for, and people have allowed to buy again. */
  readonly allowed: number
  readonly processes: readonly (Process | undefined)[]
  readonly wire: readonly Request[]
  readonly late: Late | undefined
  /** Keys whose last request has no definite refusal yet. */
  readonly doubtful: readonly string[]
  /** Keys of orders that a caller was given, or that a person gave up. */
  readonly heard: readonly string[]
  /** True once a call was told 'no' and nobody has asked since. */
  readonly no: boolean
  /** Random keys that were drawn. */
  readonly drawn: number
  readonly calls: number
  readonly faults: number
  readonly passes: number
}

/** A promise is broken. */
export class Broken extends Error {}

export function broken(what: string): never {
  throw new Broken(what)
}

const shapes = new Map<string, number>()
const known = new WeakMap<object, number>()

/** The same number for equal values, so that states are compared without being written out. */
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
