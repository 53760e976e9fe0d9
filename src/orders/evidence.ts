/**
 * Whether an order that the service shows may be the one that a record stands for. Responses get shifted, proxies return
 * another request's, and another integration of the same customer may use the same references.
 */
import { REDACTED } from '../http/redact.ts'
import { parseJson } from '../http/request.ts'
import type { Order } from '../schemas/order.ts'
import { CanonicalJsonError } from './canonical.ts'
import { type Derive, fieldTags } from './identity.ts'
import type { JournalRecord } from './record.ts'

/** What an order repeats of the request that bought it, where it has the type of what was sent. */
export interface Echo {
  readonly externalOrderId?: string | undefined
  readonly serviceId?: string | undefined
  readonly quantity?: number | undefined
  readonly target?: string | undefined
}

/** An order as a list shows it. */
export interface ListedOrder extends Echo {
  readonly id: string
  /** The order, where it is readable as one. */
  readonly order?: Order
}

/** What is known of the order that an {@link Echo} is compared with. */
export type Asked = Pick<JournalRecord, 'externalOrderId' | 'key' | 'fields' | 'body'>

/**
 * How strictly an order is judged. The response to our own request is ours once the reference agrees. An order found in a
 * list needs more: another integration may use the same reference.
 */
export type FoundIn = 'response' | 'list'

/** What a record's body asks for; nothing once that was dropped. */
export function requestOf({ body }: Pick<JournalRecord, 'body'>): Readonly<Record<string, unknown>> {
  const request = parseJson(body ?? '')?.json
  return typeof request === 'object' ? { ...request } : {}
}

/** Reads what an order repeats; of inherited properties, nothing. */
export function echoOf(order: object): Echo {
  const metadata = own(order, 'metadata')
  const nested =
    typeof metadata === 'object' && metadata !== null ? own(metadata, 'externalOrderId') : undefined
  const quantity = own(order, 'quantity')
  return {
    externalOrderId: stringOf(nested) ?? stringOf(own(order, 'externalOrderId')),
    serviceId: stringOf(own(order, 'serviceId')),
    quantity: typeof quantity === 'number' ? quantity : undefined,
    target: stringOf(own(order, 'target')),
  }
}

/** The field in which an order differs from what was asked for, as the caller wrote it; nothing if it may be the same. */
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
 * True if a listed order shows another target than was asked for. That proves nothing: the service may spell targets in its
 * own way, or another integration may use the same reference. So it is neither adopted nor bought once more.
 */
export function hasOtherTarget(derive: Derive, asked: Asked, { target }: Echo): boolean {
  return target !== undefined && !mayHaveTag(derive, asked, 'target', target)
}

/** The source system that a request names, at the top or in its metadata. */
export function sourceSystemOf(asked: Asked): string | undefined {
  const request = requestOf(asked)
  const { metadata } = request
  const nested = typeof metadata === 'object' && metadata !== null ? own(metadata, 'sourceSystem') : undefined
  return stringOf(own(request, 'sourceSystem')) || stringOf(nested) || undefined
}

/** Where an API key was cut out of what is shown, nothing can be compared. */
function mayBe(asked: unknown, shown: string | number): boolean {
  return typeof asked !== typeof shown || asked === shown || String(shown).includes(REDACTED)
}

/** By the tag of the field, which stays when the body is dropped. A field without a tag says nothing. */
function mayHaveTag(derive: Derive, { key, fields }: Asked, field: string, shown: string | number): boolean {
  if (!Object.hasOwn(fields, field) || String(shown).includes(REDACTED)) return true
  try {
    return fieldTags(derive, key, { [field]: shown })[field] === fields[field]
  } catch (error) {
    if (!(error instanceof CanonicalJsonError)) throw error
    // What has no canonical form was never sent.
    return false
  }
}

function own(value: object, name: string): unknown {
  return Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined
}

function stringOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
