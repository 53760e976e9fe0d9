import { fingerprintOf } from '../../../../src/identity/keys.ts'
import { type Facts, PLAIN_FACTS } from '../../../../src/orders/protocol/rules.ts'
import type { Intent } from '../../../../src/orders/record/intent.ts'
import type { JournalRecord } from '../../../../src/orders/record/record.ts'
import { LEFT_OPEN, MEMBERS, MINUTE, NOW, WINDOW } from '../../../support/order-context.ts'

export const ATTEMPT = 30_000
export const timing = { now: NOW, safeRetryWindow: WINDOW, attempt: ATTEMPT } as const
export const here: Facts = { ...PLAIN_FACTS, ...timing }

/** Changes to a record. Undefined fields are removed. */
export type Changes = { readonly [Field in keyof JournalRecord]?: JournalRecord[Field] | undefined }

/** A record of an order with a reference, opened ten minutes ago by a call that has ended. */
export function record(changes: Changes = {}): JournalRecord {
  const then = NOW - 10 * MINUTE
  const made: JournalRecord = {
    ...LEFT_OPEN,
    firstSentAt: then,
    createdAt: then,
    updatedAt: then,
    version: 1,
  }
  for (const [field, value] of Object.entries(changes)) {
    if (value === undefined) Reflect.deleteProperty(made, field)
    else Reflect.set(made, field, value)
  }
  return made
}

/** The wish of a caller for the order of {@link record}. */
export const intent: Intent = {
  slot: 'ref:r1',
  rowId: 'row',
  body: LEFT_OPEN.body ?? '',
  fingerprint: LEFT_OPEN.fingerprint,
  externalOrderId: 'r1',
}
export const changed: Intent = {
  ...intent,
  fingerprint: fingerprintOf('ref:r1', [...MEMBERS, ['quantity', '2']]),
}
