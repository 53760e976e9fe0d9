/**
 * Decides which calls are for the same order, and which key the service gets for that order. All
 * functions are pure: {@link Derive} is a parameter.
 *
 * Never change a rule in this file, because records are stored under names that these rules made.
 * After a store is lost, a derived first key protects the wallet only if every version of this
 * package derives the same key. A better rule gets a new version tag (`k2`, …), and the old rule
 * stays. Test vectors pin the current rules.
 */
import { canonicalJson } from './canonical.ts'

/**
 * Namespace of every derived UUID v5. The value was drawn once at random and must never change:
 * another value would rename all records and change all derived keys.
 */
export const KEY_NAMESPACE = '84a1a9a0-ff0d-4bf6-bce3-f9b27cb0e095'

/**
 * Turns a name into a UUID, which is always the same for that name: the UUID v5 (SHA-1, RFC 9562
 * section 5.5) of the name's UTF-8 bytes within {@link KEY_NAMESPACE}, in lower case.
 *
 * Any language can compute version 5, and it runs synchronously without WebCrypto, which insecure
 * origins lack. The 36 characters of a UUID fit every known limit on idempotency keys. SHA-1 is
 * enough: keys must be repeatable and distinct, not secret.
 */
export type Derive = (name: string) => string

/** The identity of an intent. A missing field and `undefined` mean the same. */
export interface IntentNames {
  /**
   * The caller's own reference for the order. Must not be empty: all orders with an empty
   * reference would be the same order.
   */
  readonly externalOrderId?: string | undefined
  /** The caller's own idempotency key. */
  readonly idempotencyKey?: string | undefined
  /** Result of {@link fingerprintOf} for the request. */
  readonly fingerprint: string
}

const ANONYMOUS = 'anon:'

/**
 * The slot of an intent: the name of its record. Two calls are for the same order if and only if
 * they have the same slot (within one {@link scopeOf}).
 *
 * The reference comes first, because it is the caller's name for the order and outlives processes.
 * Then comes the caller's key, then the payload. The prefixes ensure that a reference, a key and a
 * payload never have the same slot.
 *
 * @returns `ref:<externalOrderId>`, `key:<idempotencyKey>` or `anon:<fingerprint>`
 */
export function slotOf(names: IntentNames): string {
  if (names.externalOrderId !== undefined) return `ref:${names.externalOrderId}`
  if (names.idempotencyKey !== undefined) return `key:${names.idempotencyKey}`
  return `${ANONYMOUS}${names.fingerprint}`
}

/**
 * True for the slot of an anonymous intent. The next order with the same payload has the same slot.
 */
export function isAnonymous(slot: string): boolean {
  return slot.startsWith(ANONYMOUS)
}

export interface DerivedKeyParts {
  /** Label of the service ({@link normalizeServer}): sandbox and production must not share keys. */
  readonly server: string
  /**
   * Label of the customer account: two tenants may both have an `order-1`. Never use the API key,
   * which rotates.
   */
  readonly account: string
  /** The caller's own reference for the order. */
  readonly externalOrderId: string
  /** Generation of the key: 0 for the first, one more for each later key. */
  readonly generation: number
}

/**
 * Computes the idempotency key of an order with a reference. A process that has lost the record
 * computes the first key (generation 0) again, and the service recognises the repetition. Later
 * keys depend on the store: docs/guide/lost-store.md, "If the store is lost".
 *
 * The key does not depend on the payload. If it did, the same reference with another quantity would
 * have another key, and the wallet would be charged twice. With the same key, the service returns
 * IDEMPOTENCY_CONFLICT and buys nothing.
 *
 * @throws {CanonicalJsonError} if a string has a lone surrogate
 */
export function derivedKey(derive: Derive, parts: DerivedKeyParts): string {
  return derive(canonicalJson(['k1', parts.server, parts.account, parts.externalOrderId, parts.generation]))
}

/**
 * The content of a request as one UUID: every top-level field, including unknown fields, except
 * `metadata`. `metadata` describes the order for the caller and may differ between two attempts.
 *
 * @param request plain data as it will be sent; `undefined` fields are treated as absent
 * @throws {CanonicalJsonError} if a field cannot be written as JSON unchanged
 */
export function fingerprintOf(derive: Derive, request: Readonly<Record<string, unknown>>): string {
  const { metadata: _metadata, ...fields } = request
  return derive(canonicalJson(['f1', fields]))
}

/**
 * A short tag of each top-level field's value, except `metadata`. Tags stay in a record after its
 * body is dropped, so that a conflict can still name the fields that differ.
 *
 * The salt prevents one precomputed table from finding known values in all stolen records. A tag of
 * 32 bits is too short to confirm a guess. If two values share a tag by chance (1 in 4 billion),
 * the only effect is that a message does not name the field: {@link fingerprintOf} decides whether
 * requests differ.
 *
 * @param salt random string that is stored with the tag
 * @returns eight lower-case hexadecimal characters for each field that is sent
 * @throws {CanonicalJsonError} if a field cannot be written as JSON unchanged
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
  // Assigning the fields one by one would lose a field called __proto__.
  return Object.fromEntries(tags)
}

/**
 * The fields whose tags differ, including those that only one side has. Both sides must have the
 * same salt.
 */
export function differingFields(
  a: Readonly<Record<string, string>>,
  b: Readonly<Record<string, string>>,
): string[] {
  const fields = new Set([...Object.keys(a), ...Object.keys(b)])
  return [...fields].filter((field) => !sameMember(a, b, field)).sort()
}

/** Inherited members are treated as absent. */
function sameMember(
  a: Readonly<Record<string, string>>,
  b: Readonly<Record<string, string>>,
  field: string,
): boolean {
  return Object.hasOwn(a, field) && Object.hasOwn(b, field) && a[field] === b[field]
}

/**
 * A short tag of the API key that sent a request. An ambiguous order is repeated only under the API
 * key that sent it, because the service may scope idempotency keys by API key.
 *
 * 32 bits are enough to notice a rotation (1 miss in 4 billion) and far too few to confirm a
 * guessed API key. The salt of each record prevents a comparison of the tags of two records.
 *
 * @param salt random string that is stored with the tag
 * @param apiKey the API key, or null if a proxy adds it
 * @returns eight lower-case hexadecimal characters, or `none` without an API key
 */
export function apiKeyTag(derive: Derive, salt: string, apiKey: string | null): string {
  return apiKey === null ? 'none' : shortTag(derive, ['a1', salt, apiKey])
}

const BY_PROXY = 'p'

/**
 * The tag of an API key that a proxy adds. The proxy computes the same tag and compares the two
 * tags.
 *
 * @param proxyTag the proxy's name for the API key, which is in every response of the proxy
 */
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

/**
 * The scope of records: server and account. Records of two scopes never mix. The API key is not
 * part of the scope, because open orders must be found after a key rotation.
 *
 * @param server label of the service ({@link normalizeServer})
 * @param account label of the customer account; records without an account have a separate scope
 */
export function scopeOf(server: string, account?: string): string {
  return canonicalJson([server, account ?? null])
}

/**
 * The id of a slot's row in a store: a UUID, so that references of any length and alphabet fit
 * every database.
 *
 * @throws {CanonicalJsonError} if the slot has a lone surrogate
 */
export function rowIdOf(derive: Derive, slot: string): string {
  return derive(canonicalJson(['s1', slot]))
}

/**
 * The default label of a service: its base address in normal form. Normalisation covers letter case
 * and Unicode form of the host, the default port, dot segments, needless escapes (RFC 3986, section
 * 6.2.2), trailing slashes, and the dot at the end of a host. The path keeps its case.
 *
 * User name, password, query and fragment are left out: a label is stored and must contain no
 * secret.
 *
 * @param baseUrl an absolute http or https address
 * @returns for example `https://api.example.com/ordering`
 * @throws {TypeError} if `baseUrl` is anything else; the message does not quote the address, which
 * may contain a password
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
    // The runtime's own error quotes the whole address.
    return undefined
  }
}

/** Letters, digits, `-`, `.`, `_` and `~` never need an escape (RFC 3986, section 2.3). */
function normalizedEscape(escaped: string): string {
  const character = String.fromCharCode(Number.parseInt(escaped.slice(1), 16))
  return /[\w.~-]/.test(character) ? character : escaped.toUpperCase()
}

/**
 * What is wrong with a caller's idempotency key. Undefined if it is valid.
 *
 * A key has 1 to 255 visible ASCII characters (0x21 to 0x7E). The API document states only
 * "string"; 255 is the widest published limit of comparable services. Headers may trim, join or
 * re-encode other characters: two different keys could then become equal on the wire.
 *
 * @returns a reason such as `is empty`, to follow the field's name; it never quotes the key
 */
export function checkIdempotencyKey(key: unknown): string | undefined {
  if (typeof key !== 'string') return 'is not a string'
  if (key === '') return 'is empty'
  if (key.length > 255) return 'has more than 255 characters'
  if (!/^[!-~]+$/.test(key)) return 'has a character that is not visible ASCII (0x21 to 0x7E)'
  return undefined
}
