import { type OrderContext, tagOf } from './context.ts'
import { type Action, startOf } from './decision.ts'
import type { Intent } from './intent.ts'
import type { RecordContent } from './journal.ts'
import { isUnsent, type JournalRecord } from './record.ts'
import { startedWith } from './record-endings.ts'
import { unsentContent } from './unsent.ts'

/** What a call does with what it found: nothing was there, or the record says what. */
export type Step = Action | { readonly action: 'begin' }

/**
 * What a call continues or begins.
 * @param record what is remembered of this intent; absent for a new one
 */
export function begunContent(
  context: OrderContext,
  intent: Intent,
  record: JournalRecord | undefined,
  step: Step,
  {
    totalTimeout,
    duplicateKey,
  }: { readonly totalTimeout: number; readonly duplicateKey: string | undefined },
): RecordContent {
  if (record !== undefined && (step.action === 'continue' || step.action === 'read')) {
    if (isUnsent(record)) return repeatedContent(context, record, totalTimeout)
    const { hold: _hold, rejection: _rejection, ...rest } = record
    // Whoever opened it may have sent it: nothing that this call hears is clean.
    return { ...rest, ambiguous: true }
  }
  const key = step.action === 'reopen' ? step.key : 'fresh'
  const again = key === 'given' || key === 'fresh' ? record : record && startedWith(context, record, key)
  return unsentContent(context, intent, again, { moved: key === 'given', duplicateKey })
}

/** What recovery sends again, and what a call sends that was enqueued. */
export function repeatedContent(
  context: OrderContext,
  record: JournalRecord,
  totalTimeout: number,
): RecordContent {
  const { connection, safeRetryWindow } = context
  const timing = { now: connection.runtime.now(), safeRetryWindow, totalTimeout }
  // Nothing is in doubt, so an unsent order is sent as if it were asked for again now.
  const start = isUnsent(record) ? startOf(record, timing) : undefined
  const { rejection: _rejection, ...started } = startedWith(context, record, start ?? 'same')
  // Whoever opened another may have sent it: nothing that is heard from now on is clean.
  return isUnsent(record) ? started : { ...started, ambiguous: true }
}

/** The record as a call claims it; the write of it is what allows the call to send. */
export function claimedContent(
  context: OrderContext,
  content: RecordContent,
  remaining: number,
  credential: string | null,
): RecordContent {
  const { runtime } = context.connection
  const now = runtime.now()
  return {
    ...content,
    firstSentAt: content.firstSentAt ?? now,
    busyUntil: now + remaining,
    claim: runtime.randomId(),
    apiKeyTag: tagOf(context, content.key, credential, content.apiKeyTag),
  }
}
