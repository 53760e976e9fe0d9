import { bare, defined, isObject, isUndefinedIn, ownValue } from '../defined.ts'
import { InvalidRequestError, type Issue } from '../errors/classes.ts'
import { checkNow, issuesText } from '../schemas/check.ts'
import { type CreateOrderRequest, createOrderRequestSchema } from '../schemas/order.ts'
import { edits } from '../settings/readers.ts'
import { CanonicalJsonError, canonicalJson, jsonMethod } from './canonical.ts'
import { checkIdempotencyKey, type Derive, derivedKey, fingerprintOf, rowIdOf, slotOf } from './identity.ts'
import type { JournalRecord } from './record.ts'

/** Read from the arguments of `create()` once, so that later changes to them have no effect. */
export interface Intent {
  readonly slot: string
  readonly rowId: string
  /** The canonical JSON that every attempt sends. */
  readonly body: string
  /** A copy of the request, for naming the fields that differ in a conflict. */
  readonly request: Readonly<Record<string, unknown>>
  readonly fingerprint: string
  readonly externalOrderId?: string
  readonly idempotencyKey?: string
}

export interface IntentOptions {
  readonly idempotencyKey?: string | undefined
  /** True if the caller passed `idempotencyKey: undefined`, perhaps by mistake. */
  readonly keyIsUndefined?: boolean | undefined
  /** Set if the caller passed `allowDuplicate`. Gives the order a slot of its own. */
  readonly duplicateKey?: string | undefined
}

export function readIntent(derive: Derive, request: CreateOrderRequest, options: IntentOptions): Intent {
  refuseMisnamed(request)
  let body: string
  try {
    body = canonicalJson(request)
  } catch (error) {
    if (!(error instanceof CanonicalJsonError)) throw error
    throw invalid([{ path: error.path, message: error.problem }])
  }
  const checked = checkNow(createOrderRequestSchema, JSON.parse(body))
  if (!('value' in checked)) throw invalid(checked.issues)
  const data = checked.value
  // Check the names again, because toJSON() may have added fields.
  refuseMisnamed(data)
  const externalOrderId = data.metadata?.externalOrderId
  const { idempotencyKey, duplicateKey } = options
  const anonymous =
    externalOrderId === undefined && idempotencyKey === undefined && duplicateKey === undefined
  const lost = anonymous ? lostName(request, options) : undefined
  if (lost !== undefined) {
    const message = 'is undefined, so a repeated call could place a second order: set it, or omit it'
    throw invalid([{ path: lost, message }])
  }
  const badKey = idempotencyKey === undefined ? undefined : checkIdempotencyKey(idempotencyKey)
  if (badKey !== undefined) throw invalid([{ path: 'options.idempotencyKey', message: badKey }])
  if (duplicateKey !== undefined && (externalOrderId !== undefined || idempotencyKey !== undefined)) {
    const message = 'is only for orders without a reference or key; omit it'
    throw invalid([{ path: 'options.allowDuplicate', message }])
  }
  const fingerprint = fingerprintOf(derive, data)
  const slot = slotOf({ externalOrderId, idempotencyKey: idempotencyKey ?? duplicateKey, fingerprint })
  return bare({
    slot,
    rowId: rowIdOf(derive, slot),
    body,
    request: data,
    fingerprint,
    ...defined({ externalOrderId, idempotencyKey }),
  })
}

function refuseMisnamed(request: unknown): void {
  const issues = misnamedFields(request)
  if (issues.length > 0) throw invalid(issues)
}

/**
 * Finds a reference or key that is undefined. Canonical JSON would silently drop it, and the order
 * would be anonymous.
 */
function lostName(request: CreateOrderRequest, { keyIsUndefined }: IntentOptions): string | undefined {
  if (keyIsUndefined === true) return 'options.idempotencyKey'
  if (isUndefinedIn(request, 'metadata')) return 'metadata'
  const metadata = ownValue(request, 'metadata')
  return isUndefinedIn(metadata, 'externalOrderId') ? 'metadata.externalOrderId' : undefined
}

/**
 * An earlier, valid call with the same reference or key may have been charged, and the error must
 * say so.
 */
export function slotOfInvalid(request: unknown, idempotencyKey: unknown): string | undefined {
  const externalOrderId = writtenMember(writtenMember(request, 'metadata'), 'externalOrderId')
  if (typeof externalOrderId === 'string') return `ref:${externalOrderId}`
  return checkIdempotencyKey(idempotencyKey) === undefined ? `key:${idempotencyKey}` : undefined
}

/** Reads a member as canonical JSON would write it: through getters and `toJSON()`. */
function writtenMember(value: unknown, name: string): unknown {
  try {
    const plain = written(value)
    return isObject(plain) && Object.hasOwn(plain, name) ? written(plain[name]) : undefined
  } catch {
    // Without a name, no record can be found.
    return undefined
  }
}

function written(value: unknown): unknown {
  const toJson = isObject(value) ? jsonMethod(value) : undefined
  return typeof toJson === 'function' ? toJson.call(value, '') : value
}

/**
 * Detects a record that something other than this package has changed. Sending such a record could
 * buy another order, or the same order twice.
 */
export function isGenuine(
  derive: Derive,
  { server, account }: { readonly server: string; readonly account: string | undefined },
  rowId: string,
  record: JournalRecord,
): boolean {
  const { slot, key, keyOrigin, generation, fingerprint, externalOrderId, body } = record
  const isKey = slot.startsWith('key:')
  const named = slotOf({ externalOrderId, fingerprint, idempotencyKey: isKey ? key : undefined })
  if (slot !== named || rowIdOf(derive, slot) !== rowId) return false
  if (keyOrigin === 'derived') {
    if (externalOrderId === undefined || account === undefined) return false
    if (derivedKey(derive, { server, account, externalOrderId, generation }) !== key) return false
  }
  if (body === undefined) return true
  try {
    const checked = checkNow(createOrderRequestSchema, JSON.parse(body))
    if (!('value' in checked)) return false
    const { value } = checked
    return value.metadata?.externalOrderId === externalOrderId && fingerprintOf(derive, value) === fingerprint
  } catch {
    return false
  }
}

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

const PLACES: Readonly<Record<string, string>> = {
  serviceId: 'serviceId',
  target: 'target',
  quantity: 'quantity',
  metadata: 'metadata',
  externalOrderId: 'metadata.externalOrderId',
  idempotencyKey: 'options',
  allowDuplicate: 'options',
  signal: 'options',
  timeout: 'options',
  totalTimeout: 'options',
  maxRetries: 'options',
  headers: 'options',
}

/** With one wrong letter, a shorter name may be another word: `readers` is not `headers`. */
const LONG_NAME = 8

/**
 * A misspelled reference or key does not identify the order: a repeated call could place, and
 * charge, a second order. Other unknown fields are sent unchanged.
 */
export function misnamedFields(request: unknown): readonly Issue[] {
  const issues: Issue[] = []
  collect(issues, request, '')
  collect(issues, ownValue(request, 'metadata'), 'metadata.')
  return issues
}

/** In `metadata`, the caller chooses all names except `externalOrderId`. */
function collect(issues: Issue[], fields: unknown, prefix: string): void {
  if (typeof fields !== 'object' || fields === null) return
  for (const name of Object.keys(fields)) {
    const path = prefix + name
    if (PLACES[name] === path) continue
    const meant = Object.keys(PLACES).find((known) => PLACES[known]?.startsWith(prefix) && means(name, known))
    if (meant === undefined) continue
    const message =
      PLACES[meant] === 'options'
        ? `is a call option: pass ${meant} in the second argument`
        : `must be named ${PLACES[meant]}`
    issues.push({ path, message })
  }
}

function means(name: string, known: string): boolean {
  const [a, b] = [folded(name), folded(known)]
  return a === b || (b.length >= LONG_NAME && Math.abs(a.length - b.length) <= 1 && edits(a, b) <= 1)
}

function folded(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '')
}
