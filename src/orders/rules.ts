import type { Condition, Facts } from './conditions.ts'
import * as when from './conditions.ts'
import { inWindow, isBusy, type Start } from './conditions.ts'
import type { Found } from './journal.ts'
import { isUnsent, type JournalRecord } from './record.ts'
import type { AttentionReason } from './recovery-outcome.ts'

/**
 * Phase of an order in the store:
 * - `absent`: nothing was ever stored; `forgotten`: the row exists, but its record was deleted;
 * - `queued`: the order was enqueued and never sent, and there is a key that may be sent;
 * - `busy`: a call is working on the order;
 * - `open`: the outcome is unknown, and the key may be sent; `stale`: no key may be sent any more;
 * - `created`: the order was bought and read; `unread`: the order was bought but never readable;
 * - `rejected`: the record was closed without an order.
 */
export type Phase = 'absent' | 'forgotten' | KnownPhase
type KnownPhase = 'queued' | 'busy' | 'open' | 'stale' | 'created' | 'unread' | 'rejected'

/**
 * `resolve`: a person confirms an order. `abandon`: a person closes the record without an order.
 */
export type Command = 'create' | 'enqueue' | 'recover' | 'resolve' | 'abandon' | 'forget'

/**
 * The order that is claimed and sent:
 * - `new`: a new order, under its first key, whatever the row contained before;
 * - `stored`: the order in the record; if it was never sent, under the key that {@link Start}
 *   names;
 * - `overdue`: like `stored`, even past the window of the order's key;
 * - `same`, `first`, `next`: a closed order that is ordered again, with that key; `given`: with the
 *   caller's key.
 */
export type Sends = 'new' | 'stored' | 'given' | Start

/** Why a command is refused. Nothing is sent, and nothing is changed. */
export type Refusal =
  /** The stored order has another payload, or another key. */
  | 'payload'
  | 'key'
  /** Another call is placing the same order, which has no reference or key. */
  | 'duplicate'
  /**
   * The order is ambiguous, and its key must not be sent again. `window`: the key is too old.
   * `age`: the order is anonymous, and its record is too old. `api_key`: another API key sent it.
   */
  | 'window'
  | 'age'
  | 'api_key'
  /** The order is ambiguous, and recovery does not repeat it. */
  | 'held'
  | 'busy'
  | 'unreadable'
  /**
   * The row now holds the next identical order, so the earlier order's outcome is unknown here.
   */
  | 'replaced'
  /** The service may have forgotten the caller's key, and no other key may replace it. */
  | 'spent'
  /** The parts of the stored record contradict each other. */
  | 'corrupt'
  /** The order does not fit `options.service`. */
  | 'misfit'
  /** Nothing is remembered under the name. */
  | 'unknown'
  /** The order was created, or has a different id. */
  | 'created'
  | 'other_order'
  /** A call wrote the record after a person decided to abandon the order. */
  | 'changed'
  /** The order is not settled, so its record cannot be forgotten. */
  | 'unsettled'

/** Why recovery looks an order up instead of repeating its request. */
type HeldBack = Exclude<AttentionReason, 'newer_version'>

interface Send<S extends Sends | 'overdue'> {
  readonly step: 'send'
  readonly as: S
}
interface Refuse<R extends Refusal> {
  readonly step: 'refuse'
  readonly because: R
}
/** Looks the order up: by its id if known, otherwise in the list. */
interface LookUp {
  readonly step: 'look_up'
  readonly because: HeldBack
}
/** The remembered order is the result. */
interface Tell {
  readonly step: 'tell'
}
interface Nothing {
  readonly step: 'nothing'
}

type Differs = 'payload' | 'key'

/** Every step of a command. */
export interface StepOf {
  readonly create:
    | Send<Sends>
    | LookUp
    | Tell
    /** Waits for the call that is working on the order. */
    | { readonly step: 'wait' }
    /** Reads the order by its id, because the service may have forgotten its key. */
    | { readonly step: 'read' }
    | Refuse<Differs | 'replaced' | 'duplicate' | 'window' | 'age' | 'api_key' | 'unreadable'>
    | Refuse<'spent' | 'corrupt' | 'misfit'>
  readonly enqueue: /** Enqueues the order; `given`: under a different key. */
    | { readonly step: 'write'; readonly as: 'new' | 'again' | 'given' }
    /**
     * Takes the record from a call that is presumed dead. If that call resumes, it can no longer
     * close the record.
     */
    | { readonly step: 'take_over' }
    | Tell
    | Refuse<Differs | 'window' | 'held' | 'busy' | 'spent' | 'misfit'>
  readonly recover: Send<'stored' | 'overdue'> | LookUp | Tell | Nothing | { readonly step: 'leave' }
  readonly resolve: { readonly step: 'verify' } | Refuse<'unknown' | 'busy' | 'other_order'>
  readonly abandon: { readonly step: 'close' } | Tell | Refuse<'unknown' | 'busy' | 'created' | 'changed'>
  readonly forget: { readonly step: 'empty' } | Nothing | Refuse<'unsettled'>
}

/** Conditions with their steps, in order. The last entry is the step if no condition is true. */
type Cell<Known, Step> = readonly [...(readonly [condition: Condition<Known>, step: Step])[], otherwise: Step]
type Row<Known> = { readonly [C in Command]: Cell<Known, StepOf[C]> }

const send = <const S extends Sends | 'overdue'>(as: S): Send<S> => ({ step: 'send', as })
const refuse = <const R extends Refusal>(because: R): Refuse<R> => ({ step: 'refuse', because })
const lookUp = (because: HeldBack): LookUp => ({ step: 'look_up', because })
const tell: Tell = { step: 'tell' }
const nothing: Nothing = { step: 'nothing' }

/** The stored order is not this call's order. */
const DIFFERS = [
  [when.otherPayload, refuse('payload')],
  [when.otherKey, refuse('key')],
] as const
const REPLACED = [when.replaced, refuse('replaced')] as const
/** A closed order cannot be ordered again if no key may be sent. */
const SPENT = [
  [when.keyLeftBefore, refuse('spent')],
  [when.otherKeyUnproven, refuse('key')],
  [when.foreignKeyTooOld, refuse('window')],
  [when.keyTooOld, refuse('spent')],
] as const
/** Conditions under which recovery does not repeat an ambiguous request on its own. */
const HELD_BACK = [
  [when.damaged, lookUp('corrupt')],
  // Not even `replay: 'all'` overrides this: under another API key, the same idempotency key may
  // place a new order.
  [when.otherApiKey, lookUp('api_key_changed')],
  [when.replaysAll, send('overdue')],
  [when.aborted, lookUp('aborted')],
  [when.refusedAfterDoubt, lookUp('refused_after_doubt')],
] as const

const NOT_REMEMBERED: Row<undefined> = {
  create: [[when.misfit, refuse('misfit')], send('new')],
  enqueue: [[when.misfit, refuse('misfit')], { step: 'write', as: 'new' }],
  recover: [nothing],
  resolve: [refuse('unknown')],
  abandon: [refuse('unknown')],
  forget: [nothing],
}

/**
 * The step of each command in each phase: the first step whose condition is true, or the last step.
 * docs/protocol.md prints this table.
 */
export const RULES: Readonly<
  Record<'absent' | 'forgotten', Row<undefined>> & Record<KnownPhase, Row<JournalRecord>>
> = {
  absent: NOT_REMEMBERED,
  forgotten: NOT_REMEMBERED,
  queued: {
    create: [
      ...DIFFERS,
      [when.damaged, refuse('corrupt')],
      [when.misfit, refuse('misfit')],
      [when.maybeRestored, lookUp('past_window')],
      send('stored'),
    ],
    enqueue: [...DIFFERS, tell],
    recover: [
      [when.damaged, lookUp('corrupt')],
      [when.replaysAll, send('overdue')],
      [when.maybeRestored, lookUp('past_window')],
      send('stored'),
    ],
    resolve: [{ step: 'verify' }],
    abandon: [[when.changedSince, refuse('changed')], { step: 'close' }],
    forget: [refuse('unsettled')],
  },
  busy: {
    create: [REPLACED, ...DIFFERS, [when.namelessTwin, refuse('duplicate')], { step: 'wait' }],
    // The running call may still close the record as not sent, so the order would not stay
    // enqueued. Waiting for that call would hold up the caller's transaction.
    enqueue: [...DIFFERS, refuse('busy')],
    recover: [{ step: 'leave' }],
    resolve: [refuse('busy')],
    abandon: [refuse('busy')],
    forget: [refuse('unsettled')],
  },
  open: {
    create: [
      REPLACED,
      ...DIFFERS,
      [when.otherApiKey, refuse('api_key')],
      [when.namelessAndOld, refuse('age')],
      [when.damaged, refuse('corrupt')],
      send('stored'),
    ],
    enqueue: [...DIFFERS, [when.held, refuse('held')], { step: 'take_over' }],
    recover: [...HELD_BACK, send('stored')],
    resolve: [{ step: 'verify' }],
    abandon: [[when.changedSince, refuse('changed')], { step: 'close' }],
    forget: [refuse('unsettled')],
  },
  stale: {
    create: [REPLACED, ...DIFFERS, refuse('window')],
    enqueue: [...DIFFERS, refuse('window')],
    recover: [...HELD_BACK, lookUp('past_window')],
    resolve: [{ step: 'verify' }],
    abandon: [[when.changedSince, refuse('changed')], { step: 'close' }],
    forget: [refuse('unsettled')],
  },
  created: {
    create: [
      REPLACED,
      ...DIFFERS,
      [when.named, tell],
      [when.boughtMeanwhile, tell],
      [when.misfit, refuse('misfit')],
      send('new'),
    ],
    enqueue: [...DIFFERS, tell],
    recover: [tell],
    resolve: [[when.live, refuse('busy')], [when.otherOrder, refuse('other_order')], { step: 'verify' }],
    abandon: [[when.live, refuse('busy')], refuse('created')],
    forget: [[when.live, refuse('unsettled')], { step: 'empty' }],
  },
  unread: {
    create: [
      REPLACED,
      ...DIFFERS,
      [when.neitherRepeatableNorNamed, refuse('unreadable')],
      [when.notRepeatable, { step: 'read' }],
      [when.damaged, refuse('corrupt')],
      send('stored'),
    ],
    enqueue: [...DIFFERS, tell],
    recover: [
      [when.bodyGone, lookUp('unreadable')],
      [when.damaged, lookUp('corrupt')],
      [when.otherApiKey, lookUp('api_key_changed')],
      // Do not send the order, not even with `replay: 'all'`: it is bought, and a forgotten key
      // would buy it again.
      [when.pastWindow, lookUp('past_window')],
      send('stored'),
    ],
    resolve: [[when.otherOrder, refuse('other_order')], { step: 'verify' }],
    abandon: [refuse('created')],
    forget: [refuse('unsettled')],
  },
  rejected: {
    create: [
      REPLACED,
      ...SPENT,
      [when.damagedAgain, refuse('corrupt')],
      [when.misfit, refuse('misfit')],
      [when.nameless, send('new')],
      [when.otherKey, send('given')],
      [when.startsFirst, send('first')],
      [when.startsNext, send('next')],
      send('same'),
    ],
    enqueue: [
      ...SPENT,
      [when.misfit, refuse('misfit')],
      [when.otherKey, { step: 'write', as: 'given' }],
      { step: 'write', as: 'again' },
    ],
    recover: [[when.settled, tell], [when.live, { step: 'leave' }], lookUp('conflict')],
    resolve: [[when.live, refuse('busy')], { step: 'verify' }],
    abandon: [
      [when.live, refuse('busy')],
      [when.settled, tell],
      [when.changedSince, refuse('changed')],
      { step: 'close' },
    ],
    forget: [[when.live, refuse('unsettled')], [when.unsettled, refuse('unsettled')], { step: 'empty' }],
  },
}

export function phaseOf({ row, record }: Pick<Found, 'row' | 'record'>, facts: Facts): Phase {
  if (record === undefined) return row === undefined ? 'absent' : 'forgotten'
  return knownPhase(record, facts)
}

function knownPhase(record: JournalRecord, facts: Facts): KnownPhase {
  if (record.state === 'rejected') return 'rejected'
  if (record.state === 'created' && record.readable) return 'created'
  if (facts.isLive || (!facts.outwaited && isBusy(record, facts.now))) return 'busy'
  if (record.state === 'created') return 'unread'
  if (!inWindow(record, facts)) return 'stale'
  return isUnsent(record) ? 'queued' : 'open'
}

export function decide<C extends Command>(
  command: C,
  { row, record }: Pick<Found, 'row' | 'record'>,
  facts: Facts,
): StepOf[C] {
  if (record === undefined)
    return firstStep(RULES[row === undefined ? 'absent' : 'forgotten'][command], undefined, facts)
  return firstStep(RULES[knownPhase(record, facts)][command], record, facts)
}

interface AnyStep {
  readonly step: string
}

function firstStep<Known, Step extends AnyStep>(cell: Cell<Known, Step>, record: Known, facts: Facts): Step {
  for (const entry of cell) {
    if (isStep(entry)) return entry
    const [condition, step] = entry
    if (condition(record, facts)) return step
  }
  throw new TypeError('unreachable: the last entry of a cell is a step')
}

function isStep<Known, Step extends AnyStep>(
  entry: readonly [condition: Condition<Known>, step: Step] | Step,
): entry is Step {
  return 'step' in entry
}

/**
 * Throws, because a call that continues after an unknown step might send the order. A step without
 * a branch does not compile.
 */
export function unknownStep(step: never): never {
  throw new Error(`Nothing was sent: the step ${JSON.stringify(step)} is not known.`)
}
