/**
 * The loop behind every command that changes a record: read the record, choose a step by the rules,
 * write, send. If another writer was faster, the loop starts again.
 */
import type { Charged, CustomerOrderingError } from '../errors/classes.ts'
import type { CallSettings } from '../http/call.ts'
import { type Deadline, Interruption } from '../http/deadline.ts'
import { askedContent, claimedContent } from './claim.ts'
import { type Facts, isBusy, isFromFuture, PLAIN_FACTS } from './conditions.ts'
import type { OrderContext } from './context.ts'
import { isAnonymous } from './identity.ts'
import type { Intent } from './intent.ts'
import type { Found, FoundRecord, Journal, Unwritten } from './journal.ts'
import type { SendOptions } from './key-attempts.ts'
import { moneyOf, type PlaceOrderErrors } from './place-order-errors.ts'
import { isPending, type JournalRecord, type RecordContent } from './record.ts'
import { type Command, decide, type StepOf } from './rules.ts'
import { type Sent, sendOrder } from './send-order.ts'
import { apply } from './transitions.ts'

export type Turn<Result> = Settled<Result> | Write<Result> | Send<Result>

/** The command ends, or reads the record again after `again` milliseconds. */
type Settled<Result> = { readonly end: Result } | { readonly again: number }

interface Conditional<Result> {
  /** The version that the write replaces. */
  readonly over: Found
  /** Called if another writer was faster. */
  lost(): Settled<Result>
  /** Called if the write did not happen, or may not have happened. */
  unwritten(written: Unwritten, content: RecordContent): Settled<Result> | Promise<Settled<Result>>
}

interface Write<Result> extends Conditional<Result> {
  readonly write: RecordContent
  written(found: FoundRecord): Result
}

/** Nothing is sent unless the claim is stored. */
interface Send<Result> extends Conditional<Result> {
  /** The content to which the claim is added. */
  readonly send: RecordContent
  readonly how: Omit<SendOptions, 'deadline' | 'unused'>
  sent(sent: Sent, claimed: FoundRecord): Promise<Result>
}

export interface Task<C extends Command, Result> {
  readonly command: C
  readonly deadline: Deadline
  /**
   * Reads the record, and fetches whatever the facts depend on.
   * @param interrupted why the wait before this read ended early
   */
  look(interrupted: Interruption | undefined): Promise<Found>
  /** Called right before the step is chosen, with no `await` in between: facts go stale. */
  facts(found: Found): Facts
  perform(step: StepOf[C], found: Found): Turn<Result> | Promise<Turn<Result>>
}

export async function run<C extends Command, Result>(
  context: OrderContext,
  task: Task<C, Result>,
): Promise<Result> {
  const { deadline } = task
  let interrupted: Interruption | undefined
  for (;;) {
    const found = await task.look(interrupted)
    let turn = await task.perform(decide(task.command, found, task.facts(found)), found)
    if ('over' in turn) {
      const content =
        'write' in turn
          ? turn.write
          : claimedContent(context, turn.send, deadline.remaining(), turn.how.credential)
      const written = await context.journal.write(turn.over, content, deadline)
      if (written.result === 'written') {
        if ('write' in turn) return turn.written(written.found)
        const how = { ...turn.how, deadline, unused: turn.send.firstSentAt === undefined }
        return await turn.sent(await sendOrder(context, written.found, how), written.found)
      }
      turn = written.result === 'lost' ? turn.lost() : await turn.unwritten(written, content)
    }
    if ('end' in turn) return turn.end
    if (turn.again > 0) interrupted = await deadline.sleep(turn.again)
  }
}

export function plainFacts(
  { connection, safeRetryWindow }: OrderContext,
  { totalTimeout }: Pick<CallSettings, 'totalTimeout'>,
): Facts {
  return { ...PLAIN_FACTS, now: connection.runtime.now(), safeRetryWindow, totalTimeout }
}

/**
 * If the record's times are in the future, marks the age of its keys as unknown. If the store does
 * not accept the mark, this call still treats the keys as marked.
 */
export async function withTrustedTimes<F extends Found>(
  { connection, journal }: OrderContext,
  found: F,
  deadline: Deadline,
): Promise<F> {
  const { runtime } = connection
  const now = runtime.now()
  if (found.record === undefined || !isFromFuture(found.record, now)) return found
  const { createdAt, updatedAt, version, ...record } = found.record
  const busy = isBusy(found.record, now)
  const content = apply(record, { type: 'distrusted', busy, claim: runtime.randomId() })
  const marked = { ...found, record: { ...content, createdAt, updatedAt, version } }
  if (!isPending(content)) return marked
  const written = await journal.write(found, content, deadline)
  return written.result === 'written' ? { ...marked, ...written.found } : marked
}

export interface OrderCall {
  readonly context: OrderContext
  readonly intent: Intent
  readonly settings: CallSettings
  readonly duplicateKey: string | undefined
  readonly deadline: Deadline
  readonly errors: PlaceOrderErrors
}

/** Milliseconds for which a call may still read and write its record after the call's deadline. */
const LAST_LOOK = 500

/**
 * Makes the error of a call whose claim may not have been stored. The store may still apply the
 * claim, or a write of an earlier call, and recovery would then send the order. So `charged` is
 * `'no'` only if the store certainly rejected the claim, or after the record was overwritten.
 */
export async function unclaimedError(
  { context, deadline, errors }: OrderCall,
  written: Unwritten,
  base: Found,
  content: RecordContent,
): Promise<CustomerOrderingError> {
  const { connection, journal } = context
  const { record } = base
  let charged = moneyOf(record)
  if (charged === 'no' && written.result !== 'refused') {
    const closed =
      record === undefined
        ? cancelled(content)
        : apply(record, { type: 'rewritten', claim: connection.runtime.randomId() })
    const grace = deadline.grace(0)
    // Leave the row's content unchanged if it belongs to an earlier order, or if the codec failed:
    // the codec would fail again.
    const stays = written.result === 'failed' || (record === undefined && base.row !== undefined)
    const fenced = stays ? journal.fence(base, grace) : writeOver(journal, base, closed, grace)
    if (!(await fenced)) charged = 'unknown'
  }
  const over = deadline.over()
  return over === undefined
    ? errors.notStored(written, charged, content.key, record)
    : errors.interrupted(over, charged, content.key)
}

interface LeftBehind {
  readonly charged: Charged
  readonly record: JournalRecord | undefined
}

/**
 * Determines `charged` for a call that ends without a claim. Reports `'no'` only after overwriting
 * the record: another call's late write could still reopen it, and recovery would send the order.
 */
export async function leaveBehind(
  { context, intent, deadline, duplicateKey }: OrderCall,
  asked: JournalRecord | undefined,
): Promise<LeftBehind> {
  const { journal } = context
  // The read and the write share one grace period, so that the call ends soon after its deadline.
  const grace = deadline.grace(LAST_LOOK)
  const found = await journal.load(intent.rowId, grace).catch(() => undefined)
  if (found === undefined || found instanceof Interruption) return { charged: 'unknown', record: undefined }
  const { record } = found
  // Another order in the slot proves nothing about the order that this call continues.
  if (asked !== undefined && record?.key !== asked.key) return { charged: moneyOf(asked), record: asked }
  // A bought anonymous order belongs to an earlier call: identical orders share a slot.
  const other =
    asked === undefined && record?.state === 'created' && record.readable && isAnonymous(record.slot)
  const own = other ? undefined : record
  const charged = moneyOf(own)
  if (charged !== 'no') return { charged, record: own }
  const content =
    record === undefined
      ? cancelled(askedContent(context, intent, undefined, duplicateKey))
      : apply(record, { type: 'rewritten', claim: context.connection.runtime.randomId() })
  return { charged: (await writeOver(journal, found, content, grace)) ? 'no' : 'unknown', record: own }
}

function cancelled(content: RecordContent): RecordContent {
  const rejection = { kind: 'cancelled' } as const
  return apply(content, { type: 'closed', rejection, attempts: 0, shared: false, unused: true })
}

/**
 * Overwrites the record, or rewrites its row unchanged if the codec fails. Returns true if no
 * earlier write can still be applied.
 */
export async function writeOver(
  journal: Journal,
  found: Found,
  content: RecordContent,
  deadline: Deadline,
): Promise<boolean> {
  const { result } = await journal.write(found, content, deadline)
  if (result === 'failed') return await journal.fence(found, deadline)
  return result === 'written' || result === 'refused'
}

/** For steps that the rules allow only if there is a record. */
export function known(found: Found | undefined): FoundRecord {
  const { row, record } = found ?? {}
  if (found === undefined || row === undefined || record === undefined)
    throw new TypeError('unreachable: there is no record')
  return { id: found.id, row, record }
}
