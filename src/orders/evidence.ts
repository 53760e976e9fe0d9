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
}

export interface ListedOrder extends Echo {
  readonly id: string
  /** The whole order, if it matches the schema. */
  readonly order?: Order
}

export type Asked = Pick<JournalRecord, 'externalOrderId' | 'key' | 'fields' | 'body'>

/**
 * In a response to our own request, an equal reference proves whose order it is. In a list, other
 * fields must match too, because another integration may use the same reference.
 */
export type FoundIn = 'response' | 'list'

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
  }
}

/** Returns the first request field that the order contradicts, or undefined if there is none. */
export function contradiction(derive: Derive, asked: Asked, echo: Echo, found: FoundIn): string | undefined {
  if (asked.externalOrderId !== undefined && echo.externalOrderId !== undefined) {
    if (!mayBe(asked.externalOrderId, echo.externalOrderId)) return 'metadata.externalOrderId'
    if (found === 'response') return undefined
  }
  const request = found === 'response' ? requestOf(asked) : undefined
  for (const field of ['serviceId', 'quantity'] as const) {
    const shown = echo[field]
    if (shown === undefined) continue
    const same =
      request === undefined ? mayHaveTag(derive, asked, field, shown) : mayBe(request[field], shown)
    if (!same) return field
  }
  return undefined
}

/**
 * A different target proves nothing: the service may spell targets differently, or another
 * integration may use the same reference. So the caller must neither adopt the listed order nor
 * send the request again.
 */
export function hasOtherTarget(derive: Derive, asked: Asked, { target }: Echo): boolean {
  return target !== undefined && !mayHaveTag(derive, asked, 'target', target)
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
