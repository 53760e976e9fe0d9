/** What each command does with an order in each phase: one table. */
import { pathProblem } from '../../http/path.ts'
import { differingFields, isNameless } from '../../identity/keys.ts'
import type { Intent } from '../record/intent.ts'
import { isPending, type JournalRecord } from '../record/record.ts'
import { isBusy, mayAttempt, mayBeRunning, PERSON_SKEW, startOf, type Timing } from './keys.ts'

/**
 * Phase of an order in the store:
 * - `absent`: there is no record, or it was forgotten;
 * - `busy`: a call is working on the order;
 * - `open`: the outcome is unknown, and the key may be sent again;
 * - `stale`: the outcome is unknown, and the service may have forgotten the key;
 * - `created`: the order was bought, and is remembered;
 * - `unread`: the order was bought, but no response was readable;
 * - `rejected`: the record was closed without an order.
 */
export type Phase = 'absent' | KnownPhase
export type KnownPhase = 'busy' | 'open' | 'stale' | 'created' | 'unread' | 'rejected'

/** A person confirms that the order exists (`resolve`), or closes its record without an order. */
export type Command = 'create' | 'recover' | 'confirm' | 'abandon' | 'forget'

interface Refuse<Because extends string> {
  readonly step: 'refuse'
  readonly because: Because
}
/** Searches the service's list for the order. */
interface LookUp {
  readonly step: 'look_up'
  /** Why the order is not sent again. */
  readonly because: 'past_window' | 'held' | 'api_key_changed'
}
/**
 * - `send`: claims the order, then sends it;
 * - `tell`: returns what is remembered;
 * - `read`: reads the bought order by its id;
 * - `wait`: waits for the call that is working on the order, then reads the record again.
 */
type Plain<Name extends string> = Name extends string ? { readonly step: Name } : never

type Differs = 'payload' | 'key'

export interface StepOf {
  readonly create:
    | Plain<'send' | 'tell' | 'read' | 'wait'>
    | LookUp
    | Refuse<Differs | 'duplicate' | 'window' | 'spent' | 'unreadable' | 'api_key'>
  readonly recover: Plain<'send' | 'tell' | 'read' | 'nothing' | 'in_progress'> | LookUp
  readonly confirm: Plain<'verify'> | Refuse<'busy' | 'other_order'>
  readonly abandon: Plain<'close' | 'tell'> | Refuse<'unknown' | 'busy' | 'created' | 'changed'>
  readonly forget: Plain<'empty' | 'nothing'> | Refuse<'unsettled'>
}

/** Why a command ends without sending or settling the order. */
export type RefusalOf<C extends Command> = Extract<StepOf[C], { readonly step: 'refuse' }>['because']

export interface Facts extends Timing {
  /** What the caller of `create()` wants. */
  readonly wanted: Intent | undefined
  /** True if a call of this process is working on the order. */
  readonly isLive: boolean
  /** True if this call may take over the claim of another process. */
  readonly outwaited: boolean
  /** Version of the record whose order this call did not find in the service's whole list. */
  readonly unlisted: number | undefined
  /** When a person called `resolve()`, in milliseconds since 1970. */
  readonly decidedAt: number
  /** The order id that was passed to `resolve()`. */
  readonly orderId: string | undefined
}

export const PLAIN_FACTS: Omit<Facts, keyof Timing> = {
  wanted: undefined,
  isLive: false,
  outwaited: false,
  unlisted: undefined,
  decidedAt: 0,
  orderId: undefined,
}

/** Names and comments are printed in `docs/protocol.md`. */
export type Condition = (record: JournalRecord, facts: Facts) => boolean

/** The caller gives another key. A key belongs to its order until the record is forgotten. */
export const otherKey: Condition = ({ key }, { wanted }) =>
  wanted?.idempotencyKey !== undefined && key !== '' && wanted.idempotencyKey !== key

/**
 * After a conflict, the key may belong to the payload that this call requests. But a call that was
 * taken over may still send the stored payload.
 */
export function permitsOther(record: JournalRecord, now: number): boolean {
  return record.hold === 'conflict' && !mayBeRunning(record, now)
}

/**
 * The payload differs. A refused order may be changed. After a conflict, an order may be changed once no
 * call may still be sending it. An order that only `resolve()` has recorded has no payload to compare.
 */
export const otherPayload: Condition = (record, { wanted, now }) =>
  wanted !== undefined &&
  record.state !== 'rejected' &&
  !permitsOther(record, now) &&
  Object.keys(record.fingerprint).length > 0 &&
  differingFields(record.fingerprint, wanted.fingerprint).length > 0

/** The order has no reference or key. Identical nameless orders share one record. */
const nameless: Condition = ({ slot }) => isNameless(slot)

/** Identical nameless orders share one record, and a call that was overtaken may still return its order. */
const overtaken: Condition = ({ slot, othersUntil = 0 }, { now }) => isNameless(slot) && othersUntil > now

/** The caller aborted the order, or the service refused it after doubt, or reported a conflict. */
export const held: Condition = ({ hold }) => hold !== undefined

/** The record has the order's id, and a path can contain it. */
export const idKnown: Condition = ({ order }) =>
  order?.id !== undefined && pathProblem(order.id) === undefined

/** The request is gone, or the window of its key is over. */
const notRepeatable: Condition = ({ body, firstSentAt }, facts) =>
  body === undefined || !mayAttempt(firstSentAt, facts)

/** A caller's key never changes, and its window is over. */
export const spent: Condition = (record, facts) =>
  startOf(record, facts, facts.wanted?.idempotencyKey) === undefined

/**
 * Behind the refusal, a hidden retry may have bought the order, and the service may have forgotten
 * its key. A list that was read before the record changed proves nothing.
 */
export const maybeHidden: Condition = (record, facts) =>
  record.maybeHidden === true &&
  record.version !== facts.unlisted &&
  record.externalOrderId !== undefined &&
  !mayAttempt(record.firstSentAt, facts)

/**
 * A call whose key would be replaced may still send it, or was still sending when the person decided:
 * the machine may have slept since.
 */
export const running: Condition = (record, { decidedAt, now }) =>
  mayBeRunning(record, now) || mayBeRunning(record, decidedAt)

/** A call wrote the record after a person called `resolve()`, and may have sent the order. */
export const changedSince: Condition = ({ updatedAt }, { decidedAt, now }) =>
  // If the clock was set back, assume a change. Ignore an `updatedAt` that is further in the future than the
  // clocks of a person and a machine may differ.
  decidedAt > now || (updatedAt > decidedAt && updatedAt <= now + PERSON_SKEW)

/** The record has another order's id. */
const otherOrder: Condition = ({ order }, { orderId }) => order?.id !== undefined && order.id !== orderId

/** Conditions with their steps. The first true condition decides; the last entry is the default. */
export type Cell<Step> = readonly [...(readonly [when: Condition, step: Step])[], otherwise: Step]
type Row = { readonly [C in Command]: Cell<StepOf[C]> }

const send = { step: 'send' } as const
const tell = { step: 'tell' } as const
const read = { step: 'read' } as const
const verify = { step: 'verify' } as const
const nothing = { step: 'nothing' } as const
const refuse = <const Because extends string>(because: Because): Refuse<Because> => ({
  step: 'refuse',
  because,
})
const lookUp = (because: LookUp['because']): LookUp => ({ step: 'look_up', because })

/** Begin every cell of `create()` for an order with a record. */
export const GUARDS: readonly (readonly [when: Condition, step: Refuse<Differs>])[] = [
  [otherKey, refuse('key')],
  [otherPayload, refuse('payload')],
]

const CLOSE: Cell<StepOf['abandon']> = [
  [running, refuse('busy')],
  [changedSince, refuse('changed')],
  { step: 'close' },
]
/** Printed in `docs/protocol.md` by `npm run docs:tables`. */
export const RULES: Readonly<Record<KnownPhase, Row>> & {
  readonly absent: { readonly [C in Command]: readonly [StepOf[C]] }
} = {
  absent: {
    create: [send],
    recover: [nothing],
    // So an order of an earlier integration is adopted.
    confirm: [verify],
    abandon: [refuse('unknown')],
    forget: [nothing],
  },
  busy: {
    create: [...GUARDS, [nameless, refuse('duplicate')], { step: 'wait' }],
    recover: [{ step: 'in_progress' }],
    confirm: [refuse('busy')],
    abandon: [refuse('busy')],
    forget: [refuse('unsettled')],
  },
  open: {
    create: [...GUARDS, [overtaken, refuse('duplicate')], send],
    recover: [[held, lookUp('held')], send],
    confirm: [verify],
    abandon: CLOSE,
    forget: [refuse('unsettled')],
  },
  stale: {
    create: [...GUARDS, refuse('window')],
    recover: [[held, lookUp('held')], lookUp('past_window')],
    confirm: [verify],
    abandon: CLOSE,
    forget: [refuse('unsettled')],
  },
  created: {
    create: [...GUARDS, [nameless, send], tell],
    recover: [tell],
    confirm: [[otherOrder, refuse('other_order')], verify],
    abandon: [refuse('created')],
    forget: [{ step: 'empty' }],
  },
  unread: {
    create: [
      ...GUARDS,
      [overtaken, refuse('duplicate')],
      [idKnown, read],
      [notRepeatable, refuse('unreadable')],
      send,
    ],
    recover: [[idKnown, read], [notRepeatable, lookUp('past_window')], send],
    confirm: [[otherOrder, refuse('other_order')], verify],
    abandon: [refuse('created')],
    forget: [[idKnown, { step: 'empty' }], refuse('unsettled')],
  },
  rejected: {
    create: [...GUARDS, [maybeHidden, lookUp('past_window')], [spent, refuse('spent')], send],
    recover: [tell],
    confirm: [verify],
    abandon: [tell],
    forget: [{ step: 'empty' }],
  },
}

export function phaseOf(record: JournalRecord, facts: Facts): KnownPhase {
  if (record.state === 'rejected') return 'rejected'
  if (!isPending(record)) return 'created'
  if (facts.isLive || (!facts.outwaited && isBusy(record, facts.now))) return 'busy'
  if (record.state === 'created') return 'unread'
  return mayAttempt(record.firstSentAt, facts) ? 'open' : 'stale'
}

export function ruleFor<C extends Command>(
  command: C,
  record: JournalRecord | undefined,
  facts: Facts,
): StepOf[C] {
  if (record === undefined) return RULES.absent[command][0]
  const cell: Cell<StepOf[C]> = RULES[phaseOf(record, facts)][command]
  for (const entry of cell) {
    if ('step' in entry) return entry
    const [when, step] = entry
    if (when(record, facts)) return step
  }
  throw new TypeError('unreachable: the last entry of a cell is a step')
}

/** Throws, because a call that continues after an unknown step might send the order. */
export function unknownStep(step: never): never {
  throw new Error(`Nothing was sent: ${JSON.stringify(step)} is an unknown step.`)
}
