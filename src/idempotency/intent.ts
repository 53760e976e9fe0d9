import { InvalidRequestError, type Issue } from '../errors.ts'
import { check, issuesText } from '../schemas/check.ts'
import { type CreateOrderRequest, createOrderRequestSchema } from '../schemas/order.ts'
import { CanonicalJsonError, canonicalJson } from './canonical.ts'
import { checkIdempotencyKey, type Derive, fingerprintOf, rowIdOf, slotOf } from './identity.ts'

/** What one call of `create()` wants, taken from its arguments once, so that later changes to them change nothing. */
export interface Intent {
  readonly slot: string
  /** Name of the slot's row in the store. */
  readonly rowId: string
  /** Canonical JSON: the bytes of every attempt. */
  readonly body: string
  /** The body as data of our own, for naming differing fields. */
  readonly request: Readonly<Record<string, unknown>>
  readonly fingerprint: string
  readonly externalOrderId?: string
  /** Idempotency-Key given by the caller. */
  readonly idempotencyKey?: string
}

/** What names the intent besides the request. */
export interface IntentOptions {
  readonly idempotencyKey?: string | undefined
  /** Key of a slot of its own, for an anonymous order that is meant to be another one. */
  readonly duplicateKey?: string | undefined
}

/**
 * Reads the arguments of `create()`.
 * @throws {InvalidRequestError} naming every field that is wrong; nothing was sent
 */
export function readIntent(derive: Derive, request: CreateOrderRequest, options: IntentOptions): Intent {
  let body: string
  try {
    body = canonicalJson(request)
  } catch (error) {
    if (!(error instanceof CanonicalJsonError)) throw error
    throw invalid([{ path: error.path, message: error.message }])
  }
  const copy: unknown = JSON.parse(body)
  const checked = check(createOrderRequestSchema, copy)
  if (checked instanceof Promise || !('value' in checked)) {
    throw invalid('issues' in checked ? checked.issues : [{ path: '', message: 'must be an object' }])
  }
  const data = checked.value
  const externalOrderId = data.metadata?.externalOrderId
  const { idempotencyKey, duplicateKey } = options
  const badKey = idempotencyKey === undefined ? undefined : checkIdempotencyKey(idempotencyKey)
  if (badKey !== undefined) throw invalid([{ path: 'options.idempotencyKey', message: badKey }])
  if (duplicateKey !== undefined && (externalOrderId !== undefined || idempotencyKey !== undefined)) {
    const message =
      'is for orders without a reference and without a key; give another reference or key instead'
    throw invalid([{ path: 'options.allowDuplicate', message }])
  }
  const fingerprint = fingerprintOf(derive, data)
  const slot = slotOf({ externalOrderId, idempotencyKey: idempotencyKey ?? duplicateKey, fingerprint })
  return {
    slot,
    rowId: rowIdOf(derive, slot),
    body,
    request: data,
    fingerprint,
    ...(externalOrderId === undefined ? {} : { externalOrderId }),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  }
}

/** Names of the fields whose values differ between two requests, `metadata` aside. */
export function differingRequestFields(
  a: Readonly<Record<string, unknown>>,
  b: Readonly<Record<string, unknown>>,
): string[] {
  const names = new Set([...Object.keys(a), ...Object.keys(b)])
  names.delete('metadata')
  return [...names]
    .filter((name) => canonicalJson([a[name] ?? null]) !== canonicalJson([b[name] ?? null]))
    .sort()
}

function invalid(issues: readonly Issue[]): InvalidRequestError {
  return new InvalidRequestError(`The order is not valid: ${issuesText(issues)}. Nothing was sent.`, {
    issues,
  })
}
