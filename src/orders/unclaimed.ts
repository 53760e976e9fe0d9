import type { Charged, CustomerOrderingError } from '../errors.ts'
import { type Deadline, Interruption } from '../http/deadline.ts'
import { askedContent } from './claim.ts'
import type { OrderContext } from './context.ts'
import { isAnonymous } from './identity.ts'
import type { Intent } from './intent.ts'
import type { Found, Journal, Unwritten } from './journal.ts'
import { moneyOf, type PlaceOrderErrors } from './place-order-errors.ts'
import type { JournalRecord, RecordContent } from './record.ts'
import { apply } from './transitions.ts'

/** How long past its end a call may go on that may write over the record then, milliseconds: it ends within a second, whatever it has done before. */
const LAST_LOOK = 500

/** The call that ends without a claim. */
interface UnclaimedCall {
  readonly context: OrderContext
  readonly intent: Intent
  readonly duplicateKey: string | undefined
  readonly deadline: Deadline
  readonly errors: PlaceOrderErrors
}

/** What a call without a claim leaves behind. */
interface LeftBehind {
  readonly charged: Charged
  readonly record: JournalRecord | undefined
}

/** An order that its call could not claim, so that nothing was sent: what the call may say of the wallet, and makes sure of. */
export class UnclaimedOrder {
  readonly #call: UnclaimedCall

  constructor(call: UnclaimedCall) {
    this.#call = call
  }

  /**
   * The error of a call whose claim is not stored, or not known to be. A write in doubt, this call's or an earlier one's, may
   * be applied when nobody counts on it any more, and recovery would send it: only a closed record over it makes sure that
   * nothing will be bought.
   */
  async notStored(
    written: Unwritten,
    base: Found,
    content: RecordContent,
    record: JournalRecord | undefined,
  ): Promise<CustomerOrderingError> {
    const { context, deadline, errors } = this.#call
    const { connection, journal } = context
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

  /**
   * What a call may say that ends without a claim. `'no'` is said of a record that it has written over, and of none that it
   * has only read: what another call wrote and gave up may still be on its way, and recovery would send what it opens.
   */
  async leaveBehind(asked: JournalRecord | undefined): Promise<LeftBehind> {
    const { context, intent, deadline, duplicateKey } = this.#call
    const { journal } = context
    const { runtime } = context.connection
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
        : apply(record, { type: 'rewritten', claim: runtime.randomId() })
    return { charged: (await writeOver(journal, found, content, grace)) ? 'no' : 'unknown', record: own }
  }
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
