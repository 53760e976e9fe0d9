/** One thing that a caller wants to buy once: the arguments of `create()`, read once and checked. */
import { isObject, ownValue } from '../../defined.ts'
import { InvalidRequestError, type Issue } from '../../errors/classes.ts'
import { CanonicalJsonError, canonicalJson, type Member } from '../../identity/canonical.ts'
import {
  checkIdempotencyKey,
  checkReference,
  type Derive,
  digestOf,
  type Fingerprint,
  fingerprintOf,
  rowIdOf,
  slotOf,
} from '../../identity/keys.ts'
import { checkNow, issuesText } from '../../schemas/check.ts'
import { type CreateOrderRequest, createOrderRequestSchema } from '../../schemas/order.ts'
import { CREATE } from '../../settings/arguments.ts'
import { folded, isOneEdit } from '../../settings/readers.ts'

/** No later change of the arguments has an effect. */
export interface Intent {
  readonly slot: string
  readonly rowId: string
  /** The canonical JSON that every attempt sends. */
  readonly body: string
  readonly fingerprint: Fingerprint
  readonly externalOrderId?: string | undefined
  readonly idempotencyKey?: string | undefined
  /** The key of a deliberate duplicate, which has a slot of its own. */
  readonly duplicateKey?: string | undefined
}

export interface IntentOptions {
  readonly idempotencyKey?: string | undefined
  /** True if the caller passed `idempotencyKey: undefined`, perhaps by mistake. */
  readonly keyIsUndefined?: boolean | undefined
  /** Set if the caller passed `allowDuplicate`. */
  readonly duplicateKey?: string | undefined
}

/** Far above any order, and below what a service or proxy refuses after it has charged. */
const MAX_BODY_BYTES = 262_144

export function readIntent(derive: Derive, request: CreateOrderRequest, options: IntentOptions): Intent {
  const misnamed = misnamedFields(request)
  if (misnamed.length > 0) throw invalid(misnamed)
  const members: Member[] = []
  let body: string
  try {
    body = canonicalJson(request, members)
  } catch (error) {
    if (!(error instanceof CanonicalJsonError)) throw error
    throw invalid([{ path: error.path, message: error.problem }])
  }
  const checked = checkNow(createOrderRequestSchema, JSON.parse(body))
  if (!('value' in checked)) throw invalid(checked.issues)
  const data = checked.value
  // Check the names again, because toJSON() may have added fields.
  const added = misnamedFields(data)
  if (added.length > 0) throw invalid(added)
  // Encode only a long body: a UTF-16 code unit takes at most three bytes of UTF-8.
  if (body.length * 3 > MAX_BODY_BYTES && new TextEncoder().encode(body).length > MAX_BODY_BYTES)
    refuse('', `must have at most ${MAX_BODY_BYTES} bytes as JSON`)
  const externalOrderId = data.metadata?.externalOrderId
  const { idempotencyKey, duplicateKey } = options
  if (externalOrderId !== undefined) refuse('metadata.externalOrderId', checkReference(externalOrderId))
  if (idempotencyKey !== undefined) refuse('options.idempotencyKey', checkIdempotencyKey(idempotencyKey))
  const isNamed = externalOrderId !== undefined || idempotencyKey !== undefined
  if (duplicateKey !== undefined && isNamed)
    refuse('options.allowDuplicate', 'is only for orders without a reference or key; omit it')
  const lost = isNamed || duplicateKey !== undefined ? undefined : lostName(request, data, options)
  if (lost !== undefined)
    refuse(
      lost,
      'is undefined, or has no form in JSON, so a repeated call could place a second order: set it, or omit it',
    )
  const slot = slotOf(externalOrderId, idempotencyKey ?? duplicateKey, () => digestOf(derive, members))
  const fingerprint = fingerprintOf(slot, members)
  const rowId = rowIdOf(derive, slot)
  return { slot, rowId, body, fingerprint, externalOrderId, idempotencyKey, duplicateKey }
}

function refuse(path: string, message: string | undefined): void {
  if (message !== undefined) throw invalid([{ path, message }])
}

/** A reference or key that canonical JSON drops, perhaps as undefined: the order would be nameless. */
function lostName(
  request: CreateOrderRequest,
  sent: CreateOrderRequest,
  { keyIsUndefined }: IntentOptions,
): string | undefined {
  if (keyIsUndefined === true) return 'options.idempotencyKey'
  if (sent.metadata === undefined) return Object.hasOwn(request, 'metadata') ? 'metadata' : undefined
  // Reads getters, of which Vue makes each field.
  const { metadata }: { readonly metadata?: unknown } = request
  const isLost = isObject(metadata) && Object.hasOwn(metadata, 'externalOrderId')
  return isLost ? 'metadata.externalOrderId' : undefined
}

/** An earlier, valid call with the same name may have been charged, and the error must say so. */
export function slotOfInvalid(request: unknown, idempotencyKey: unknown): string | undefined {
  let written: unknown
  try {
    // Runs getters and `toJSON()`, as canonical JSON does, and skips all other fields, which may be
    // wrong. It also reads inherited members: at worst, the error tells of a record of another order.
    written = JSON.parse(JSON.stringify(request, ['metadata', 'externalOrderId']))
  } catch {
    // Without a name, no record can be found.
  }
  const externalOrderId = ownValue(ownValue(written, 'metadata'), 'externalOrderId')
  const reference = typeof externalOrderId === 'string' ? externalOrderId : undefined
  const key = checkIdempotencyKey(idempotencyKey) === undefined ? String(idempotencyKey) : undefined
  return (reference ?? key) === undefined ? undefined : slotOf(reference, key, String)
}

function invalid(issues: readonly Issue[]): InvalidRequestError {
  return new InvalidRequestError(`The order is not valid: ${issuesText(issues)}. Nothing was sent.`, {
    issues,
  })
}

/** The known names, where they belong in a request, and how they are compared. */
const KNOWN = [
  ...['serviceId', 'target', 'quantity', 'metadata'].map((name) => ({ name, place: name })),
  { name: 'productId', place: 'serviceId' },
  { name: 'externalOrderId', place: 'metadata.externalOrderId' },
  ...Object.keys(CREATE).map((name) => ({ name, place: 'options' })),
].map(({ name, place }) => ({ name, place, folded: folded(name) }))

/** With one wrong letter, a shorter name may be another word: `readers` is not `headers`. */
const LONG_NAME = 8

/** Names that are right, or were found harmless. Programs use few names, so a call rarely compares any. */
const harmless = {
  '': new Set(['serviceId', 'target', 'quantity', 'metadata']),
  'metadata.': new Set(['externalOrderId']),
}
const MOST_HARMLESS = 1000

/**
 * A misspelled reference or key does not identify the order: a repeated call could place, and
 * charge, a second order. Other unknown fields are sent unchanged.
 */
export function misnamedFields(request: unknown): readonly Issue[] {
  const issues: Issue[] = []
  // In `metadata`, the caller chooses all names except `externalOrderId`.
  for (const prefix of ['', 'metadata.'] as const) {
    const seen = harmless[prefix]
    const fields = prefix === '' ? request : ownValue(request, 'metadata')
    if (!isObject(fields)) continue
    for (const name of Object.keys(fields)) {
      if (seen.has(name)) continue
      const form = folded(name)
      const meant = KNOWN.find(
        (known) =>
          known.place.startsWith(prefix) &&
          (form === known.folded || (known.folded.length >= LONG_NAME && isOneEdit(form, known.folded))),
      )
      if (meant === undefined) {
        if (seen.size < MOST_HARMLESS) seen.add(name)
        continue
      }
      const { name: option, place } = meant
      // An order with a service may well have a field of this name.
      if (option === 'productId' && Object.hasOwn(fields, place)) continue
      const call = `is a call option: pass ${option} in the second argument of create()`
      issues.push({ path: prefix + name, message: place === 'options' ? call : `must be named ${place}` })
    }
  }
  return issues
}
