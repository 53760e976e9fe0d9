import type { CreateManyFailure, CreateManyResult } from './create-many.ts'
import type { RecordInNeed, RecoveryOutcome } from './recovery-outcome.ts'

/** What `await client.orders.recover()` gives. It keeps nothing of the orders that need nobody, however many there are. */
export interface RecoverySummary {
  /** Orders that exist and were paid. */
  readonly created: number
  /** Records that are closed without an order. */
  readonly rejected: number
  /** Orders that a live call, or the service, is still working on. */
  readonly inProgress: number
  /** Orders that the service could not be asked about: run it again later. */
  readonly stillOpen: number
  /** Orders that need a person, each with its reason. */
  readonly needsAttention: readonly RecordInNeed[]
}

/** What `await client.orders.createMany(rows)` gives. It keeps the rows that failed, and of the others only their number. */
export interface CreateManySummary {
  /** Orders made by this run, as far as anybody can know. */
  readonly created: number
  /** Orders that existed before. */
  readonly replayed: number
  /** Rows that ended in an error: as many as `failures`. */
  readonly failed: number
  /** Rows that ended in an error, with what is known of the wallet. */
  readonly failures: readonly CreateManyFailure[]
}

/** Runs a recovery to its end. */
export async function recoverySummary(
  outcomes: AsyncIterable<RecoveryOutcome<unknown>>,
): Promise<RecoverySummary> {
  const count = { created: 0, rejected: 0, in_progress: 0, still_open: 0 }
  const needsAttention: RecordInNeed[] = []
  for await (const outcome of outcomes) {
    if (outcome.outcome === 'needs_attention') needsAttention.push(outcome)
    else count[outcome.outcome]++
  }
  const { created, rejected, in_progress: inProgress, still_open: stillOpen } = count
  return { created, rejected, inProgress, stillOpen, needsAttention }
}

/** Places all rows. */
export async function createManySummary(
  results: AsyncIterable<CreateManyResult<unknown>>,
): Promise<CreateManySummary> {
  const count = { created: 0, replayed: 0 }
  const failures: CreateManyFailure[] = []
  for await (const result of results) {
    if (!result.ok) failures.push(result)
    else if (result.replayed === true) count.replayed++
    else count.created++
  }
  return { ...count, failed: failures.length, failures }
}
