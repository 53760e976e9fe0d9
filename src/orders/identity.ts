/**
 * Which calls are the same order, and under which key the service knows it. Pure functions; the one ingredient from
 * outside is {@link Derive}.
 *
 * Everything here is frozen for ever. Records on disk are found by these names, and a first key that
 * is computed again after a store was lost protects the wallet only if it comes out the same in every
 * version of this package. A better rule gets a new version tag (`k2`, …) beside the old one; test
 * vectors pin the present ones.
 */
import { canonicalJson } from './canonical.ts'

/**
 * Namespace of every UUID v5 that this package derives. Drawn once at random and never changed: another value would
 * rename all records and all derived keys.
 */
export const KEY_NAMESPACE = '84a1a9a0-ff0d-4bf6-bce3-f9b27cb0e095'

/**
 * Turns a name into a UUID, always the same: UUID v5 (SHA-1, RFC 9562 section 5.5) of the name's UTF-8 bytes within
 * {@link KEY_NAMESPACE}, in lower-case text form.
 *
 * Version 5 because it is a published rule that any language can repeat, runs synchronously without WebCrypto (absent
 * on insecure origins), and its 36 characters fit every limit on idempotency keys we know of. SHA-1 is enough: keys
 * have to be repeatable and distinct, not secret, and a caller who forges a collision collides with himself.
 */
export type Derive = (name: string) => string

/** What an intent can be recognised by. Absent and `undefined` mean the same. */
export interface IntentNames {
  /** The caller's own reference for the order. Not empty: an empty one would make all orders without one the same. */
  readonly externalOrderId?: string | undefined
  /** The idempotency key that the caller gave. */
  readonly idempotencyKey?: string | undefined
  /** {@link fingerprintOf} the request. */
  readonly fingerprint: string
}

const ANONYMOUS = 'anon:'

/**
 * The slot of an intent: the name under which it is remembered. Two calls are the same order if and only if they have
 * the same slot (within one {@link scopeOf}).
 *
 * The reference comes first, because it is the caller's word for "this order" and outlives processes; then the key the
 * caller gave; then, for lack of a name, what is being bought. The prefixes keep the three from meeting.
 *
 * @returns `ref:<externalOrderId>`, `key:<idempotencyKey>` or `anon:<fingerprint>`
 */
export function slotOf(names: IntentNames): string {
  if (names.externalOrderId !== undefined) return `ref:${names.externalOrderId}`
  if (names.idempotencyKey !== undefined) return `key:${names.idempotencyKey}`
  return `${ANONYMOUS}${names.fingerprint}`
}

/** True of the slot of an intent without a name: the next order of the same payload has the same slot. */
export function isAnonymous(slot: string): boolean {
  return slot.startsWith(ANONYMOUS)
}

/** What a derived key is made of. */
export interface DerivedKeyParts {
  /** Label of the service, see {@link normalizeServer}: sandbox and production must not share keys. */
  readonly server: string
  /** Label of the customer account: two tenants may both have an `order-1`. Never the API key, which rotates. */
  readonly account: string
  /** The caller's own reference for the order. */
  readonly externalOrderId: string
  /** Which key of the intent: 0 for the first, one more for each further one. */
  readonly generation: number
}

/**
 * The idempotency key of an order with a reference, computed instead of drawn. A process that has
 * forgotten the order computes the first one (generation 0) again, and the service recognises the
 * repetition. Later ones depend on what the store remembers: docs/guide/lost-store.md, "What a lost store still
 * protects".
 *
 * The payload is left out on purpose. With it, the same reference and a changed quantity would be a new key, hence a
 * second charge; without it, the service answers IDEMPOTENCY_CONFLICT and nothing is bought twice.
 *
 * @returns a UUID in lower-case text form
 * @throws {CanonicalJsonError} if a text has a lone surrogate
 */
export function derivedKey(derive: Derive, parts: DerivedKeyParts): string {
  return derive(canonicalJson(['k1', parts.server, parts.account, parts.externalOrderId, parts.generation]))
}

/**
 * What a request buys, as one UUID: every top-level field that is sent, except `metadata`, which describes the order for
 * the caller and may differ between two tries of it. Fields that this package does not know count.
 *
 * @param request plain data as it will be sent; `undefined` fields count as absent
 * @throws {CanonicalJsonError} if a field cannot be written as JSON unchanged
 */
export function fingerprintOf(derive: Derive, request: Readonly<Record<string, unknown>>): string {
  const { metadata: _metadata, ...fields } = request
  return derive(canonicalJson(['f1', fields]))
}

/**
 * A short tag of each top-level field's value, except `metadata`. Tags stay in a record after its body was dropped, so
 * that a conflict can still name the fields that differ.
 *
 * The salt keeps a stolen record from being searched for known values with a table made once for all records; 32 bits
 * keep it from proving any guess. Two values that share a tag by chance (1 in 4 billion) only lose their name in a
 * message: whether requests differ is decided by {@link fingerprintOf}.
 *
 * @param salt random text that is kept beside the tag
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
  // Not by assignment, which would lose a field called __proto__.
  return Object.fromEntries(tags)
}

/**
 * The fields whose tags differ, those present on one side only included.
 *
 * @param a tags of one request, by {@link fieldTags}
 * @param b tags of another request, made with the same salt
 * @returns names sorted by UTF-16 code units; empty if none differs
 */
export function differingFields(
  a: Readonly<Record<string, string>>,
  b: Readonly<Record<string, string>>,
): string[] {
  const fields = new Set([...Object.keys(a), ...Object.keys(b)])
  return [...fields].filter((field) => !sameMember(a, b, field)).sort()
}

/** Inherited members count as absent. */
function sameMember(
  a: Readonly<Record<string, string>>,
  b: Readonly<Record<string, string>>,
  field: string,
): boolean {
  return Object.hasOwn(a, field) && Object.hasOwn(b, field) && a[field] === b[field]
}

/**
 * A short mark of the API key that sent a request. An ambiguous order is repeated only under the key that sent it,
 * because the service may keep idempotency keys apart by API key.
 *
 * 32 bits: enough to notice a rotation (a miss in 1 of 4 billion), far too few to tell whether a guessed API key is the
 * right one. The salt, different in each record, keeps marks of two records from being compared.
 *
 * @param salt random text that is kept beside the tag
 * @param apiKey the API key, or null if a proxy adds it
 * @returns eight lower-case hexadecimal characters, or `none` without an API key
 */
export function apiKeyTag(derive: Derive, salt: string, apiKey: string | null): string {
  return apiKey === null ? 'none' : shortTag(derive, ['a1', salt, apiKey])
}

/** Begins the tag of an API key that a proxy adds. */
const BY_PROXY = 'p'

/**
 * The tag of an API key that a proxy adds. The proxy computes it as well, and compares.
 *
 * @param salt as in {@link apiKeyTag}
 * @param proxyTag what the proxy calls the API key, in every response
 */
export function proxiedTag(derive: Derive, salt: string, proxyTag: string): string {
  return BY_PROXY + apiKeyTag(derive, salt, proxyTag)
}

/** True for what {@link proxiedTag} returns. */
export function isProxied(tag: string): boolean {
  return tag.startsWith(BY_PROXY)
}

/** The first 32 bits of a UUID v5 are hash bits; version and variant come later. */
function shortTag(derive: Derive, parts: readonly unknown[]): string {
  return derive(canonicalJson(parts)).slice(0, 8)
}

/**
 * The scope of records: server and account. Records of two scopes never meet. The API key is no part of it, because
 * open orders must be found again after it was rotated.
 *
 * @param server label of the service, see {@link normalizeServer}
 * @param account label of the customer account; absent is a scope of its own
 */
export function scopeOf(server: string, account?: string): string {
  return canonicalJson([server, account ?? null])
}

/**
 * The name of a slot's row in a store: a UUID, so that references of any length and alphabet fit every database's keys.
 *
 * @throws {CanonicalJsonError} if the slot has a lone surrogate
 */
export function rowIdOf(derive: Derive, slot: string): string {
  return derive(canonicalJson(['s1', slot]))
}

/**
 * The default label of a service: its base address in one spelling. All spellings of one address get the same label:
 * letter case and Unicode form of the host, default port, dot segments, escapes that need not be escapes or differ in
 * case (RFC 3986, section 6.2.2), trailing slashes, the dot at the end of a host. The path and its case are kept.
 *
 * User name, password, query and fragment are left out: a label is stored and must hold no secret.
 *
 * @param baseUrl an absolute http or https address
 * @returns for example `https://api.example.com/ordering`
 * @throws {TypeError} if it is none; the message does not quote it, because an address may hold a password
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
    // The runtime's own error carries the whole text.
    return undefined
  }
}

/** Letters, digits, `-`, `.`, `_` and `~` never need an escape (RFC 3986, section 2.3). */
function normalizedEscape(escaped: string): string {
  const character = String.fromCharCode(Number.parseInt(escaped.slice(1), 16))
  return /[\w.~-]/.test(character) ? character : escaped.toUpperCase()
}

/**
 * What is wrong with an idempotency key that a caller gave; undefined if nothing is.
 *
 * Accepted are 1 to 255 visible ASCII characters (0x21 to 0x7E). The API document only says "string"; 255 is the widest
 * published limit of comparable services. Spaces and other characters are refused because header fields trim, join or
 * re-encode them: two keys that differ here could be one on the wire.
 *
 * @returns a reason such as `is empty`, to follow the field's name; it never quotes the key
 */
export function checkIdempotencyKey(key: unknown): string | undefined {
  if (typeof key !== 'string') return 'is not a string'
  if (key === '') return 'is empty'
  if (key.length > 255) return 'has more than 255 characters'
  if (!/^[!-~]+$/.test(key)) return 'has a character other than visible ASCII (0x21 to 0x7E)'
  return undefined
}
