/**
 * The one loop of everything that changes a record: load, decide by the rules, write, send, and again where another writer
 * was faster. A command says what it knows and what a step means for its caller; the rules say which step it is.
 */
import type { Charged, CustomerOrderingError } from '../errors.ts'
import type { CallSettings } from '../http/call.ts'
import { type Deadline, Interruption } from '../http/deadline.ts'
import type { OrderOutbox } from '../stores/store.ts'
import { askedContent, claimedContent } from './claim.ts'
import { type Facts, isBusy, isFromFuture, PLAIN_FACTS } from './conditions.ts'
import type { OrderContext } from './context.ts'
import { isAnonymous } from './identity.ts'
import type { Intent } from './intent.ts'
import type { Found, FoundRecord, Journal, Unwritten } from './journal.ts'
import { moneyOf, type PlaceOrderErrors } from './place-order-errors.ts'
import { isPending, type JournalRecord, type RecordContent } from './record.ts'
import { type Command, decide, type StepOf } from './rules.ts'
import { type SendOptions, type Sent, sendOrder } from './send-order.ts'
import { apply } from './transitions.ts'

/** What a command makes of a step. */
export type Turn<Result> = Settled<Result> | Write<Result> | Send<Result>

/** The command is over, or looks again after so many milliseconds. */
type Settled<Result> = { readonly end: Result } | { readonly again: number }

interface Conditional<Result> {
  /** What is written over. */
  readonly over: Found
  /** Another writer was faster. */
  lost(): Settled<Result>
  /** The write is not there, or nobody knows. */
  unwritten(written: Unwritten, content: RecordContent): Settled<Result> | Promise<Settled<Result>>
}

interface Write<Result> extends Conditional<Result> {
  readonly write: RecordContent
  written(found: FoundRecord): Result
}

/** Claims an order and sends it. No byte leaves unless the claim is stored. */
interface Send<Result> extends Conditional<Result> {
  /** What the claim goes on with. */
  readonly send: RecordContent
  readonly how: Omit<SendOptions, 'deadline' | 'unused'>
  sent(sent: Sent, claimed: FoundRecord): Promise<Result>
}

/** What a command hands to the engine. */
export interface Task<C extends Command, Result> {
  readonly command: C
  readonly deadline: Deadline
  /** Where the record is written; undefined for the client's own store. */
  readonly store: OrderOutbox | undefined
  /**
   * Reads the record, and what has to be awaited for the facts.
   * @param interrupted why the wait before this look ended early
   */
  look(interrupted: Interruption | undefined): Promise<Found>
  /** Asked right before the step is decided on and performed, with nothing awaited in between. */
  facts(found: Found): Facts
  perform(step: StepOf[C], found: Found): Turn<Result> | Promise<Turn<Result>>
}

/** Runs a command to its end. */
export async function run<C extends Command, Result>(
  context: OrderContext,
  task: Task<C, Result>,
): Promise<Result> {
  const { deadline, store } = task
  let interrupted: Interruption | undefined
  for (;;) {
    const found = await task.look(interrupted)
    let turn = await task.perform(decide(task.command, found, task.facts(found)), found)
    if ('over' in turn) {
      const content =
        'write' in turn
          ? turn.write
          : claimedContent(context, turn.send, deadline.remaining(), turn.how.credential)
      const written = await context.journal.write(turn.over, content, deadline, store)
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

/** The facts of a command for which nothing is out of the ordinary. */
export function plainFacts(
  { connection, safeRetryWindow }: OrderContext,
  { totalTimeout }: Pick<CallSettings, 'totalTimeout'>,
): Facts {
  return { ...PLAIN_FACTS, now: connection.runtime.now(), safeRetryWindow, totalTimeout }
}

/**
 * What was found, its keys marked for good if it comes from the future. Where the store does not take the mark, this call
 * goes by it all the same.
 */
export async function withTrustedTimes<F extends Found>(
  { connection, journal }: OrderContext,
  found: F,
  deadline: Deadline,
  store?: OrderOutbox,
): Promise<F> {
  const { runtime } = connection
  const now = runtime.now()
  if (found.record === undefined || !isFromFuture(found.record, now)) return found
  const { createdAt, updatedAt, version, ...record } = found.record
  const busy = isBusy(found.record, now)
  const content = apply(record, { type: 'distrusted', busy, claim: runtime.randomId() })
  const marked = { ...found, record: { ...content, createdAt, updatedAt, version } }
  if (!isPending(content)) return marked
  const written = await journal.write(found, content, deadline, store)
  return written.result === 'written' ? { ...marked, ...written.found } : marked
}

/** One call that places an order. */
export interface OrderCall {
  readonly context: OrderContext
  readonly intent: Intent
  readonly settings: CallSettings
  /** Key of a deliberate duplicate. */
  readonly duplicateKey: string | undefined
  readonly deadline: Deadline
  readonly errors: PlaceOrderErrors
}

/** How long past its end a call may go on that may write over the record then, milliseconds: it ends within a second, whatever it has done before. */
const LAST_LOOK = 500

/**
 * The error of a call whose claim is not stored, or not known to be. A write in doubt, this call's or an earlier one's, may
 * be applied when nobody counts on it any more, and recovery would send it: only a closed record over it makes sure that
 * nothing will be bought.
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
    // The order before in the slot stays, because the new one was not claimed. A codec that has just failed is not asked again.
    const stays = written.result === 'failed' || (record === undefined && base.row !== undefined)
    const fenced = stays ? journal.fence(base, grace) : writeOver(journal, base, closed, grace)
    if (!(await fenced)) charged = 'unknown'
  }
  const over = deadline.over()
  return over === undefined
    ? errors.notStored(written, charged, content.key, record)
    : errors.interrupted(over, charged, content.key)
}

/** What a call without a claim leaves behind. */
interface LeftBehind {
  readonly charged: Charged
  readonly record: JournalRecord | undefined
}

/**
 * What a call may say that ends without a claim. `'no'` is said of a record that it has written over, and of none that it
 * has only read: what another call wrote and gave up may still be on its way, and recovery would send what it opens.
 */
export async function leaveBehind(
  { context, intent, deadline, duplicateKey }: OrderCall,
  asked: JournalRecord | undefined,
): Promise<LeftBehind> {
  const { journal } = context
  // A write of this call may have gone past its end already, and the one below may take its own moment, too.
  const grace = deadline.grace(LAST_LOOK)
  const found = await journal.load(intent.rowId, grace).catch(() => undefined)
  if (found === undefined || found instanceof Interruption) return { charged: 'unknown', record: undefined }
  const { record } = found
  // What its slot serves by now says nothing about the order that this call asks for again.
  if (asked !== undefined && record?.key !== asked.key) return { charged: moneyOf(asked), record: asked }
  // The order before this one, of which only the slot is the same.
  const other =
    asked === undefined && record?.state === 'created' && record.readable && isAnonymous(record.slot)
  const own = other ? undefined : record
  const charged = moneyOf(own)
  if (charged !== 'no') return { charged, record: own }
  const content =
    record === undefined
      ? cancelled(askedContent(context, intent, undefined, { moved: false, duplicateKey }))
      : apply(record, { type: 'rewritten', claim: context.connection.runtime.randomId() })
  return { charged: (await writeOver(journal, found, content, grace)) ? 'no' : 'unknown', record: own }
}

/** An order that was never sent, closed. */
function cancelled(content: RecordContent): RecordContent {
  const rejection = { kind: 'cancelled' } as const
  return apply(content, { type: 'closed', rejection, attempts: 0, shared: false, unused: true })
}

/**
 * Puts a closed record over what was found; where the codec cannot seal one, what was found itself. A store that refuses it
 * is certain that no write before it is still on its way.
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
