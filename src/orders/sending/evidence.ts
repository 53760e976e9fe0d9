/**
 * Whether an order from the service belongs to a record, and the write of that proof. A response may
 * belong to another request, and another integration may use the same references.
 */
import type { EchoedField } from '../../call-options.ts'
import { defined, isObject, ownValue } from '../../defined.ts'
import { Deadline, GRACE } from '../../http/deadline.ts'
import { REDACTED } from '../../http/redact.ts'
import { CanonicalJsonError } from '../../identity/canonical.ts'
import { fieldTag } from '../../identity/keys.ts'
import { parseJson } from '../../schemas/check.ts'
import type { Order } from '../../schemas/order.ts'
import { isAnother, isProven, type Proof, prove } from '../protocol/transitions.ts'
import type { OrderContext } from '../record/context.ts'
import type { FoundRecord } from '../record/journal.ts'
import type { JournalRecord } from '../record/record.ts'

/** The repeated fields that have the expected type. */
export interface Echo {
  readonly externalOrderId?: string | undefined
  readonly serviceId?: string | undefined
  readonly quantity?: number | undefined
  readonly target?: string | undefined
  /** The integration that placed the order. */
  readonly sourceSystem?: string | undefined
}

export type Asked = Pick<JournalRecord, 'slot' | 'externalOrderId' | 'fingerprint'>

export function echoOf(order: object): Echo {
  const quantity = ownValue(order, 'quantity')
  return {
    externalOrderId:
      stringIn(ownValue(order, 'metadata'), 'externalOrderId') ?? stringIn(order, 'externalOrderId'),
    serviceId: stringIn(order, 'serviceId'),
    quantity: typeof quantity === 'number' ? quantity : undefined,
    target: stringIn(order, 'target'),
    sourceSystem: sourceSystemIn(order),
  }
}

/** The one matcher: returns the fields in which an order differs from what was sent. */
export function differences(asked: Asked, echo: Echo): readonly EchoedField[] {
  const { externalOrderId } = echo
  const other =
    asked.externalOrderId !== undefined &&
    externalOrderId !== undefined &&
    externalOrderId !== asked.externalOrderId &&
    !externalOrderId.includes(REDACTED)
  const fields = (['serviceId', 'quantity', 'target'] as const).filter((field) => {
    const shown = echo[field]
    return shown !== undefined && !mayHaveTag(asked, field, shown)
  })
  return other ? ['externalOrderId', ...fields] : fields
}

/**
 * Returns the first field that proves a response to our own key to be another request's. An equal
 * reference proves that it is ours: services trim, normalise and count down the other fields. A
 * service may also spell a target differently, so the target alone proves nothing.
 */
export function contradiction(asked: Asked, echo: Echo): EchoedField | undefined {
  if (asked.externalOrderId !== undefined && echo.externalOrderId === asked.externalOrderId) return undefined
  return differences(asked, echo).find((field) => field !== 'target')
}

/**
 * Compares an order that was found in the list or by its id. The id in the record came with a response
 * to its own key, so that order is its order, however the service shows its fields now.
 */
export function differencesFound(
  asked: Asked & Partial<JournalRecord>,
  found: Echo & { readonly id: string },
): readonly EchoedField[] {
  const fields = differences(asked, found)
  if (asked.order?.id === found.id) return fields.filter((field) => field === 'externalOrderId')
  const own = sourceSystemOf(asked)
  const isOther = own !== undefined && found.sourceSystem !== undefined && found.sourceSystem !== own
  return isOther ? [...fields, 'sourceSystem'] : fields
}

/** The integration that the stored request names. */
export function sourceSystemOf({ body = '' }: Partial<JournalRecord>): string | undefined {
  const request = parseJson(body)?.json
  return isObject(request) ? sourceSystemIn(request) || undefined : undefined
}

function sourceSystemIn(object: object): string | undefined {
  return stringIn(object, 'sourceSystem') ?? stringIn(ownValue(object, 'metadata'), 'sourceSystem')
}

/** A field without a tag proves nothing, and a value in which an API key was redacted neither. */
function mayHaveTag({ slot, fingerprint }: Asked, field: string, shown: string | number): boolean {
  if (!Object.hasOwn(fingerprint, field) || String(shown).includes(REDACTED)) return true
  try {
    return fieldTag(slot, field, shown) === fingerprint[field]
  } catch (error) {
    if (!(error instanceof CanonicalJsonError)) throw error
    // This client sends only values with a canonical form, so the request had another value.
    return false
  }
}

function stringIn(object: unknown, name: string): string | undefined {
  const value = ownValue(object, name)
  return typeof value === 'string' ? value : undefined
}

export interface Proven {
  /** The record with the proof, as it is or would be stored. */
  readonly record: JournalRecord
  /** False if the store has no record of the proof. */
  readonly remembered: boolean
  /** True if the row has a later order without a reference or key. */
  readonly isDisplaced: boolean
}

const MAX_MERGES = 8

/**
 * Stores a proof of a charge over the newest record: a charge overrides any other outcome.
 *
 * @param signal ends the write, which otherwise goes on if the caller aborts the call
 */
export async function proveCreated(
  context: OrderContext,
  mine: FoundRecord,
  shown: Proof,
  deadline: Deadline,
  signal?: AbortSignal,
): Promise<Proven> {
  const { journal, connection } = context
  // Without an id of its own, a lost write could be taken for the one that was stored.
  const claim = shown.claim ?? connection.runtime.randomId()
  const proof = { ...shown, order: shown.order && rememberedOrder(context, shown.order) }
  const last = new Deadline(connection.runtime, Math.max(deadline.remaining(), 0) + GRACE, undefined)
  let newest = mine
  let isDisplaced = false
  for (let round = 0; round < MAX_MERGES; round++) {
    const { record } = newest
    // The proof must not overwrite a later order that may have been bought, in the same row.
    isDisplaced = isAnother(record, mine.record) && record.state !== 'rejected'
    if (isDisplaced) break
    if (isProven(record, proof)) return { record, remembered: true, isDisplaced }
    const written = await journal.writeOutcome(newest, prove(record, proof, claim), deadline, signal)
    if (written.result === 'written') return { record: written.found.record, remembered: true, isDisplaced }
    const current = written.result === 'lost' ? await journal.newest(mine.id, last) : undefined
    if (current === undefined) break
    // If the record was forgotten or pruned since this call read it, write it again: a proven charge
    // must not get lost.
    newest = { ...current, record: current.record ?? record }
  }
  return { record: { ...mine.record, ...prove(mine.record, proof, claim) }, remembered: false, isDisplaced }
}

export function rememberedOrder({ remember }: OrderContext, order: Partial<Order>): Partial<Order> {
  const { id, status, amount } = order
  return remember === 'order' ? order : defined({ id, status, amount })
}
