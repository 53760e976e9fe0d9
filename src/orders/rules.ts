import type { Condition, Facts } from './conditions.ts'
import * as when from './conditions.ts'
import { inWindow, isBusy, type Start } from './conditions.ts'
import type { Found } from './journal.ts'
import type { JournalRecord } from './record.ts'
import type { AttentionReason } from './recovery-outcome.ts'

/**
 * Phase of an order in the store:
 * - `absent`: no row was ever stored;
 * - `forgotten`: the row exists, but its record was deleted;
 * - `busy`: a call is working on the order;
 * - `open`: the outcome is unknown, and the key may be sent again;
 * - `stale`: the outcome is unknown, and the service may have forgotten the key;
 * - `created`: the order was bought, and its response was readable;
 * - `unread`: the order was bought, but no response was readable;
 * - `rejected`: the record was closed without an order.
 */
export type Phase = 'absent' | 'forgotten' | KnownPhase
type KnownPhase = 'busy' | 'open' | 'stale' | 'created' | 'unread' | 'rejected'

/** A person confirms the order (`resolve`), or closes its record without an order (`abandon`). */
export type Command = 'create' | 'recover' | 'resolve' | 'abandon' | 'forget'

/**
 * Which order is sent, and under which key:
 * - `new`: a new order, under its first key;
 * - `stored`: the order in the record;
 * - `same`, `first`, `next`: a closed order again, under the key that {@link Start} names.
 */
export type Sends = 'new' | 'stored' | Start

/** Why a command ends without sending or settling the order. */
export type Refusal =
  | 'payload'
  | 'key'
  /** Another call is placing the same order, and neither has a reference or key. */
  | 'duplicate'
  /** The key is too old to be sent again. */
  | 'window'
  /** The record is so old that the call may be for another order without a reference or key. */
  | 'age'
  /** Another API key sent the order. */
  | 'api_key'
  | 'busy'
  | 'unreadable'
  /** A later identical order overwrote the record, so the outcome is no longer stored. */
  | 'replaced'
  /** The order was refused, and the service may have forgotten the caller's key. */
  | 'expired'
  /** The fields of the stored record contradict one another. */
  | 'corrupt'
  | 'unknown'
  | 'created'
  /** The record has an order with another id. */
  | 'other_order'
  /** A call wrote the record after a person decided to abandon the order. */
  | 'changed'
  | 'unsettled'

type HeldBack = Exclude<AttentionReason, 'newer_version'>

interface Send<S extends Sends> {
  readonly step: 'send'
  readonly as: S
}
interface Refuse<R extends Refusal> {
  readonly step: 'refuse'
  readonly because: R
}
interface LookUp {
  readonly step: 'look_up'
  readonly because: HeldBack
}
/** Returns the remembered order. */
interface Tell {
  readonly step: 'tell'
}
interface Nothing {
  readonly step: 'nothing'
}

type Differs = 'payload' | 'key'

export interface StepOf {
  readonly create:
    | Send<Sends>
    | Tell
    /** Waits for the call that is working on the order. */
    | { readonly step: 'wait' }
    /** Reads the order by its id: the service may have forgotten the key. */
    | { readonly step: 'read' }
    | Refuse<Differs | 'replaced' | 'duplicate' | 'window' | 'age' | 'api_key' | 'unreadable'>
    | Refuse<'expired' | 'corrupt'>
  readonly recover: Send<'stored'> | LookUp | Tell | Nothing | { readonly step: 'leave' }
  readonly resolve: { readonly step: 'verify' } | Refuse<'unknown' | 'busy' | 'other_order'>
  readonly abandon: { readonly step: 'close' } | Tell | Refuse<'unknown' | 'busy' | 'created' | 'changed'>
  readonly forget: { readonly step: 'empty' } | Nothing | Refuse<'unsettled'>
}

/** Conditions with their steps. The first true condition decides; the last entry is the default. */
type Cell<Known, Step> = readonly [...(readonly [condition: Condition<Known>, step: Step])[], otherwise: Step]
type Row<Known> = { readonly [C in Command]: Cell<Known, StepOf[C]> }

const send = <const S extends Sends>(as: S): Send<S> => ({ step: 'send', as })
const refuse = <const R extends Refusal>(because: R): Refuse<R> => ({ step: 'refuse', because })
const lookUp = (because: HeldBack): LookUp => ({ step: 'look_up', because })
const tell: Tell = { step: 'tell' }
const nothing: Nothing = { step: 'nothing' }

const OTHER_KEY = [when.otherKey, refuse('key')] as const
const DIFFERS = [[when.otherPayload, refuse('payload')], OTHER_KEY] as const
const REPLACED = [when.replaced, refuse('replaced')] as const
const HELD_BACK = [
  [when.damaged, lookUp('corrupt')],
  [when.otherApiKey, lookUp('api_key_changed')],
  [when.aborted, lookUp('aborted')],
  [when.refusedAfterDoubt, lookUp('refused_after_doubt')],
] as const

const NOT_REMEMBERED: Row<undefined> = {
  create: [send('new')],
  recover: [nothing],
  resolve: [{ step: 'verify' }],
  abandon: [refuse('unknown')],
  forget: [nothing],
}

/** Printed in `docs/protocol.md` by `npm run docs:tables`. */
export const RULES: Readonly<
  Record<'absent' | 'forgotten', Row<undefined>> & Record<KnownPhase, Row<JournalRecord>>
> = {
  absent: NOT_REMEMBERED,
  forgotten: NOT_REMEMBERED,
  busy: {
    create: [REPLACED, ...DIFFERS, [when.namelessTwin, refuse('duplicate')], { step: 'wait' }],
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
    recover: [...HELD_BACK, send('stored')],
    resolve: [{ step: 'verify' }],
    abandon: [[when.mayStillRun, refuse('busy')], [when.changedSince, refuse('changed')], { step: 'close' }],
    forget: [refuse('unsettled')],
  },
  stale: {
    create: [REPLACED, ...DIFFERS, refuse('window')],
    recover: [...HELD_BACK, lookUp('past_window')],
    resolve: [{ step: 'verify' }],
    abandon: [[when.mayStillRun, refuse('busy')], [when.changedSince, refuse('changed')], { step: 'close' }],
    forget: [refuse('unsettled')],
  },
  created: {
    create: [REPLACED, ...DIFFERS, [when.named, tell], [when.boughtMeanwhile, tell], send('new')],
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
    recover: [
      [when.bodyGone, lookUp('unreadable')],
      [when.damaged, lookUp('corrupt')],
      [when.otherApiKey, lookUp('api_key_changed')],
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
      OTHER_KEY,
      [when.nameless, send('new')],
      [when.conflictTooOld, refuse('window')],
      [when.keyTooOld, refuse('expired')],
      [when.damaged, refuse('corrupt')],
      [when.startsFirst, send('first')],
      [when.startsNext, send('next')],
      send('same'),
    ],
    recover: [[when.settled, tell], [when.live, { step: 'leave' }], lookUp('conflict')],
    resolve: [[when.live, refuse('busy')], { step: 'verify' }],
    abandon: [
      [when.live, refuse('busy')],
      [when.settled, tell],
      [when.mayStillRun, refuse('busy')],
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
  return 'open'
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

/** Throws, because a call that continues after an unknown step might send the order. */
export function unknownStep(step: never): never {
  throw new Error(`Nothing was sent: ${JSON.stringify(step)} is an unknown step.`)
}
