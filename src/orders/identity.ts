/**
 * Decides which calls are for the same order, and which key the service gets for that order.
 *
 * Never change a rule in this file. These rules named all stored records. After a store is lost,
 * only the same derived key prevents a second charge. Give a new rule a new version tag (`k2`, …),
 * and keep the old rule. Test vectors pin the current rules.
 */
import { canonicalJson } from './canonical.ts'

/** Drawn once at random. Another value would rename all records and change all derived keys. */
export const KEY_NAMESPACE = '84a1a9a0-ff0d-4bf6-bce3-f9b27cb0e095'

/**
 * Computes the UUID v5 (RFC 9562 5.5) of a name in {@link KEY_NAMESPACE}, in lower case. Version 5
 * needs no WebCrypto, which insecure origins lack. Its SHA-1 is enough: keys need not be secret.
 */
export type Derive = (name: string) => string

export interface IntentNames {
  /** Never empty: all orders with an empty reference would be the same order. */
  readonly externalOrderId?: string | undefined
  readonly idempotencyKey?: string | undefined
  readonly fingerprint: string
}

const ANONYMOUS = 'anon:'

/**
 * Calls in one scope with a reference or key are for the same order if and only if they have the
 * same slot. The prefixes prevent a reference, a key and a fingerprint from having the same slot.
 */
export function slotOf(names: IntentNames): string {
  if (names.externalOrderId !== undefined) return `ref:${names.externalOrderId}`
  if (names.idempotencyKey !== undefined) return `key:${names.idempotencyKey}`
  return `${ANONYMOUS}${names.fingerprint}`
}

/** True for an order without a reference or key. Identical anonymous orders share one slot. */
export function isAnonymous(slot: string): boolean {
  return slot.startsWith(ANONYMOUS)
}

export interface DerivedKeyParts {
  /** Label of the service: sandbox and production must not share keys. */
  readonly server: string
  /** Label of the customer account: two tenants may both have an `order-1`. */
  readonly account: string
  readonly externalOrderId: string
  /** 0 for the order's first key. */
  readonly generation: number
}

/**
 * A process that has lost the store computes the same first key, so that the service recognises a
 * repeated order (docs/guide/lost-store.md).
 *
 * The key does not depend on the payload. If it did, the same reference with another quantity would
 * have another key, and the wallet would be charged twice.
 */
export function derivedKey(derive: Derive, parts: DerivedKeyParts): string {
  return derive(canonicalJson(['k1', parts.server, parts.account, parts.externalOrderId, parts.generation]))
}

/** Leaves out `metadata`, which may differ between two calls for one order. */
export function fingerprintOf(derive: Derive, request: Readonly<Record<string, unknown>>): string {
  const { metadata: _metadata, ...fields } = request
  return derive(canonicalJson(['f1', fields]))
}

/**
 * Tags stay in a record after its body is dropped, so that a conflict can still name the fields
 * that differ. A tag does not hide a value that is easy to guess. The salt prevents one precomputed
 * table from finding known values in many stolen records.
 */
export function fieldTags(
  derive: Derive,
  salt: string,
  request: Readonly<Record<string, unknown>>,
): Record<string, string> {
  const tags: [string, string][] = []
  for (const [field, value] of Object.entries(request)) {
    if (field === 'metadata' || value === undefined) continue
    tags.push([field, shortTag(derive, ['t1', salt, field, value])])
  }
  // An assignment would lose a field called `__proto__`.
  return Object.fromEntries(tags)
}

/** Tags can be compared only if they have the same salt. */
export function differingFields(
  a: Readonly<Record<string, string>>,
  b: Readonly<Record<string, string>>,
): string[] {
  const fields = new Set([...Object.keys(a), ...Object.keys(b)])
  return [...fields].filter((field) => !sameMember(a, b, field)).sort()
}

function sameMember(
  a: Readonly<Record<string, string>>,
  b: Readonly<Record<string, string>>,
  field: string,
): boolean {
  return Object.hasOwn(a, field) && Object.hasOwn(b, field) && a[field] === b[field]
}

/**
 * An ambiguous order is repeated only under the API key that sent it, because the service may scope
 * idempotency keys by API key. 32 bits detect a rotation (1 miss in 4 billion), but are too few to
 * search for the API key: many keys have the same tag. With a salt for each record, the tags of two
 * records cannot be compared.
 *
 * @param apiKey null if a proxy adds the API key
 */
export function apiKeyTag(derive: Derive, salt: string, apiKey: string | null): string {
  return apiKey === null ? 'none' : shortTag(derive, ['a1', salt, apiKey])
}

const BY_PROXY = 'p'

/** @param proxyTag the proxy's name for its API key, which every response of the proxy contains */
export function proxiedTag(derive: Derive, salt: string, proxyTag: string): string {
  return BY_PROXY + apiKeyTag(derive, salt, proxyTag)
}

export function isProxied(tag: string): boolean {
  return tag.startsWith(BY_PROXY)
}

/** The first 32 bits of a UUID v5 are hash bits; version and variant come later. */
function shortTag(derive: Derive, parts: readonly unknown[]): string {
  return derive(canonicalJson(parts)).slice(0, 8)
}

/** The API key is not part of the scope: open orders must be found after a key rotation. */
export function scopeOf(server: string, account?: string): string {
  return canonicalJson([server, account ?? null])
}

/** Returns a UUID, so that references of any length and alphabet fit every database. */
export function rowIdOf(derive: Derive, slot: string): string {
  return derive(canonicalJson(['s1', slot]))
}

/**
 * Makes the default label of a service from its base URL. Equivalent URLs have the same label (RFC
 * 3986 6.2.2). Leaves out user name, password, query and fragment, because the label is stored.
 */
export function normalizeServer(baseUrl: string): string {
  const url = parseUrl(baseUrl)
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:') {
    throw new TypeError('baseUrl is not an absolute http or https address')
  }
  const host = url.hostname.replace(/\.$/, '')
  const path = url.pathname.replace(/%[0-9a-f]{2}/gi, normalizedEscape).replace(/\/+$/, '')
  return `${url.protocol}//${host}${url.port === '' ? '' : `:${url.port}`}${path}`
}

function parseUrl(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    // The runtime's own error quotes the URL, which may contain a password.
    return undefined
  }
}

/** Decodes characters that never need an escape (RFC 3986 2.3). */
function normalizedEscape(escaped: string): string {
  const character = String.fromCharCode(Number.parseInt(escaped.slice(1), 16))
  return /[\w.~-]/.test(character) ? character : escaped.toUpperCase()
}

/**
 * Returns what is wrong with a key, without quoting the key. The API document states only "string".
 * 255 characters is the widest published limit of comparable services. Characters that are not
 * visible ASCII may be trimmed or re-encoded in a header, so that two keys become equal.
 */
export function checkIdempotencyKey(key: unknown): string | undefined {
  if (typeof key !== 'string') return 'is not a string'
  if (key === '') return 'is empty'
  if (key.length > 255) return 'has more than 255 characters'
  if (!/^[!-~]+$/.test(key)) return 'has a character that is not visible ASCII (0x21 to 0x7E)'
  return undefined
}
