/**
 * Decides whether an order from the service may belong to a record. A response may belong to
 * another request, and another integration of the same customer may use the same references.
 */
import type { EchoedField } from '../../call-options.ts'
import { isObject } from '../../defined.ts'
import { REDACTED } from '../../http/redact.ts'
import { CanonicalJsonError } from '../../identity/canonical.ts'
import type { Derive } from '../../identity/keys.ts'
import { fieldTag } from '../../identity/tags.ts'
import { parseJson } from '../../schemas/check.ts'
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
  const quantity = own(order, 'quantity')
  return {
    externalOrderId:
      stringIn(own(order, 'metadata'), 'externalOrderId') ?? stringIn(order, 'externalOrderId'),
    serviceId: stringIn(order, 'serviceId'),
    quantity: typeof quantity === 'number' ? quantity : undefined,
    target: stringIn(order, 'target'),
    sourceSystem: sourceSystemIn(order),
  }
}

/** The one matcher: returns the fields in which an order differs from what was sent. */
export function differences(derive: Derive, asked: Asked, echo: Echo): readonly EchoedField[] {
  const { externalOrderId } = echo
  const other =
    asked.externalOrderId !== undefined &&
    externalOrderId !== undefined &&
    externalOrderId !== asked.externalOrderId &&
    !externalOrderId.includes(REDACTED)
  const fields = (['serviceId', 'quantity', 'target'] as const).filter((field) => {
    const shown = echo[field]
    return shown !== undefined && !mayHaveTag(derive, asked, field, shown)
  })
  return other ? ['externalOrderId', ...fields] : fields
}

/**
 * Returns the first field that proves a response to our own key to be another request's. An equal
 * reference proves that it is ours: services trim, normalise and count down the other fields. A
 * service may also spell a target differently, so the target alone proves nothing.
 */
export function contradiction(derive: Derive, asked: Asked, echo: Echo): EchoedField | undefined {
  if (asked.externalOrderId !== undefined && echo.externalOrderId === asked.externalOrderId) return undefined
  return differences(derive, asked, echo).find((field) => field !== 'target')
}

/**
 * Compares an order from the service's list. The id that the record remembers came with a response
 * to its own key, so an order with that id is its order, however the service shows its fields now.
 */
export function differencesOfListed(
  derive: Derive,
  record: JournalRecord,
  listed: Echo & { readonly id: string },
): readonly EchoedField[] {
  const fields = differences(derive, record, listed)
  return record.order?.id === listed.id ? fields.filter((field) => field === 'externalOrderId') : fields
}

/** False for an order of another integration, which may use the same references. */
export function isOfSameSystem(record: JournalRecord, { sourceSystem }: Echo): boolean {
  const own = sourceSystemOf(record)
  return own === undefined || sourceSystem === undefined || sourceSystem === own
}

/** The integration that the stored request names. */
export function sourceSystemOf({ body = '' }: JournalRecord): string | undefined {
  const request = parseJson(body)?.json
  return isObject(request) ? sourceSystemIn(request) || undefined : undefined
}

function sourceSystemIn(object: object): string | undefined {
  return stringIn(object, 'sourceSystem') ?? stringIn(own(object, 'metadata'), 'sourceSystem')
}

/** A field without a tag proves nothing, and a value in which an API key was redacted neither. */
function mayHaveTag(
  derive: Derive,
  { slot, fingerprint }: Asked,
  field: string,
  shown: string | number,
): boolean {
  if (!Object.hasOwn(fingerprint, field) || String(shown).includes(REDACTED)) return true
  try {
    return fieldTag(derive, slot, field, shown) === fingerprint[field]
  } catch (error) {
    if (!(error instanceof CanonicalJsonError)) throw error
    // This client sends only values with a canonical form, so the request had another value.
    return false
  }
}

function own(object: unknown, name: string): unknown {
  return isObject(object) && Object.hasOwn(object, name) ? object[name] : undefined
}

function stringIn(object: unknown, name: string): string | undefined {
  const value = own(object, name)
  return typeof value === 'string' ? value : undefined
}
