/**
 * Decides whether an order from the service may belong to a record. A response may belong to
 * another request, and another integration of the same customer may use the same references.
 */
import { isObject } from '../defined.ts'
import { REDACTED } from '../http/redact.ts'
import { parseJson } from '../schemas/check.ts'
import type { Order } from '../schemas/order.ts'
import { CanonicalJsonError } from './canonical.ts'
import { type Derive, fieldTags } from './identity.ts'
import type { JournalRecord } from './record.ts'

/** The fields in which the service repeats the request, if they have the expected type. */
export interface Echo {
  readonly externalOrderId?: string | undefined
  readonly serviceId?: string | undefined
  readonly quantity?: number | undefined
  readonly target?: string | undefined
  /** Not part of the comparison: the service may name the source system itself. */
  readonly sourceSystem?: string | undefined
}

export interface ListedOrder extends Echo {
  readonly id: string
  /** The whole order, if it matches the schema. */
  readonly order?: Order
}

export type Asked = Pick<JournalRecord, 'externalOrderId' | 'key' | 'fields' | 'body'>

/** The fields of a request that a response may repeat, as the option `despite` names them. */
export const ECHOED = ['externalOrderId', 'serviceId', 'target', 'quantity'] as const
export type EchoedField = (typeof ECHOED)[number]

/** Empty after the record's body was dropped. */
export function requestOf({ body }: Pick<JournalRecord, 'body'>): Readonly<Record<string, unknown>> {
  const request = parseJson(body ?? '')?.json
  return isObject(request) ? { ...request } : {}
}

export function echoOf(order: object): Echo {
  const quantity = own(order, 'quantity')
  return {
    externalOrderId:
      stringIn(own(order, 'metadata'), 'externalOrderId') ?? stringIn(order, 'externalOrderId'),
    serviceId: stringIn(order, 'serviceId'),
    quantity: typeof quantity === 'number' ? quantity : undefined,
    target: stringIn(order, 'target'),
    sourceSystem: stringIn(order, 'sourceSystem'),
  }
}

/**
 * Returns the fields in which an order shows another value of the same type than its request. What
 * that proves depends on how the order was found.
 */
export function differences(derive: Derive, asked: Asked, echo: Echo): readonly EchoedField[] {
  const request = requestOf(asked)
  return ECHOED.filter((field) => {
    const shown = echo[field]
    if (shown === undefined) return false
    if (field === 'externalOrderId') return !mayBe(asked.externalOrderId, shown)
    return asked.body === undefined ? !mayHaveTag(derive, asked, field, shown) : !mayBe(request[field], shown)
  })
}

/**
 * Returns the field that shows that a response to our own key belongs to another request. An equal
 * reference proves that the order is ours: services trim, normalise and count down. The target
 * alone proves nothing, because a service may spell it differently.
 */
export function contradiction(derive: Derive, asked: Asked, echo: Echo): string | undefined {
  const differs = differences(derive, asked, echo)
  if (differs.includes('externalOrderId')) return 'metadata.externalOrderId'
  const isNamed = asked.externalOrderId !== undefined && echo.externalOrderId !== undefined
  return isNamed ? undefined : differs.find((field) => field !== 'target')
}

/**
 * Judges an order in the service's list: another integration may use the same reference, so every
 * field must agree. `doubtful` means that the reference is equal and another field differs.
 */
export function judgeListed(
  derive: Derive,
  asked: Asked,
  listed: Echo,
): { readonly is: 'ours' | 'doubtful' | 'anothers'; readonly differs: readonly EchoedField[] } {
  const differs = differences(derive, asked, listed)
  if (differs.length === 0) return { is: 'ours', differs }
  const isNamed = asked.externalOrderId !== undefined && listed.externalOrderId !== undefined
  return { is: isNamed && !differs.includes('externalOrderId') ? 'doubtful' : 'anothers', differs }
}

export function sourceSystemOf(asked: Asked): string | undefined {
  const request = requestOf(asked)
  return stringIn(request, 'sourceSystem') || stringIn(own(request, 'metadata'), 'sourceSystem') || undefined
}

/** A value in which an API key was redacted cannot be compared. */
function mayBe(asked: unknown, shown: string | number): boolean {
  return typeof asked !== typeof shown || asked === shown || String(shown).includes(REDACTED)
}

/** Compares tags, because the body may be gone. A field without a tag proves nothing. */
function mayHaveTag(derive: Derive, { key, fields }: Asked, field: string, shown: string | number): boolean {
  if (!Object.hasOwn(fields, field) || String(shown).includes(REDACTED)) return true
  try {
    return fieldTags(derive, key, { [field]: shown })[field] === fields[field]
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
