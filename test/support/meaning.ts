import type { Charged } from '../../src/errors/classes.ts'
import type { Shown } from '../../src/orders/protocol/outcome.ts'
import type { RecordState, RejectionKind } from '../../src/orders/record/record.ts'

interface Meaning {
  readonly charged: Charged
  readonly state: RecordState
  readonly rejection?: RejectionKind
}

/** What the caller hears, and what is stored, after attempts that show this. */
export const MEANING: Readonly<Record<Shown, Meaning>> = {
  charge: { charged: 'yes', state: 'created' },
  doubt: { charged: 'unknown', state: 'open' },
  refused: { charged: 'no', state: 'rejected', rejection: 'refused' },
  not_processed: { charged: 'no', state: 'rejected', rejection: 'not_processed' },
  cancelled: { charged: 'no', state: 'rejected', rejection: 'cancelled' },
}
