/** What one call wants, and what it has claimed. */
import type { CallSettings } from '../../http/call.ts'
import type { Deadline } from '../../http/deadline.ts'
import type { Command } from '../protocol/rules.ts'
import type { Intent } from '../record/intent.ts'
import type { FoundRecord } from '../record/journal.ts'
import type { Rejection } from '../record/record.ts'

/** One call of `create()`, or the recovery of one record. */
export interface Job {
  readonly command: Extract<Command, 'create' | 'recover'>
  readonly operation: string
  readonly rowId: string
  /** What the caller of `create()` wants. Recovery sends what the record has. */
  readonly intent: Intent | undefined
  readonly settings: CallSettings
  readonly deadline: Deadline
  /** Random id of the call, in its events and in the records that it writes. */
  readonly callId: string
  /** True to claim records even if a call of another process may still be placing their orders. */
  readonly takeOver: boolean
  /** True if this call has read the whole list of the service and did not find the order. */
  readonly isNotListed: boolean
}

/** What a call has claimed. */
export interface Claimed {
  readonly end: 'claimed'
  readonly found: FoundRecord
  /** API key of the first attempt. */
  readonly credential: string | null
  /** A refusal under this key from before this call. If it is repeated, the order gets a new key. */
  readonly earlier: Rejection | undefined
  /** True if no request with this key can have been processed yet. */
  readonly unused: boolean
  /** True if an earlier call may have sent the order. */
  readonly continues: boolean
}
