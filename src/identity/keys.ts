/**
 * Decides which calls are for the same order, and which key the service gets for that order.
 *
 * Never change a rule in this folder: they named all stored records, and after a store is lost, only
 * the same derived key prevents a second charge. Give a new rule a new version tag (`k2`, …), and keep
 * the old rule. Test vectors pin the current rules.
 */
import { canonicalJson, type Member } from './canonical.ts'

/** Drawn once at random. Another value would rename all records and change all derived keys. */
export const KEY_NAMESPACE = '84a1a9a0-ff0d-4bf6-bce3-f9b27cb0e095'

/**
 * Computes the UUID v5 (RFC 9562 5.5) of a name in {@link KEY_NAMESPACE}, in lower case. Version 5
 * needs no WebCrypto, which insecure origins lack. Its SHA-1 is enough: keys need not be secret.
 */
export type Derive = (name: string) => string

const NAMELESS = 'anon:'

/** Calls in one scope are for the same order if they have the same slot. */
export function slotOf(
  externalOrderId: string | undefined,
  idempotencyKey: string | undefined,
  digest: () => string,
): string {
  if (externalOrderId !== undefined) return `ref:${externalOrderId}`
  return idempotencyKey === undefined ? NAMELESS + digest() : `key:${idempotencyKey}`
}

/** True for an order without a reference or key. Identical ones share one slot. */
export function isNameless(slot: string): boolean {
  return slot.startsWith(NAMELESS)
}

export function referenceIn(slot: string): string | undefined {
  return slot.startsWith('ref:') ? slot.slice('ref:'.length) : undefined
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
 * repeated order (docs/guide/lost-store.md). If the key depended on the payload, the same reference
 * with another quantity would be charged a second time.
 */
export function derivedKey(derive: Derive, parts: DerivedKeyParts): string {
  const { server, account, externalOrderId, generation } = parts
  return derive(`["k1",${quoted(server)},${quoted(account)},${quoted(externalOrderId)},${generation}]`)
}

/** Not a whole array for JSON.stringify: some libraries define `Array.prototype.toJSON`. */
function quoted(text: string): string {
  return JSON.stringify(text)
}

/** The API key is not part of the scope: open orders must be found after a key rotation. */
export function scopeOf(server: string, account?: string): string {
  return canonicalJson([server, account ?? null])
}

/** Returns a UUID, so that references of any length and alphabet fit every database. */
export function rowIdOf(derive: Derive, slot: string): string {
  return derive(`["s1",${quoted(slot)}]`)
}

/**
 * Returns what is wrong with a key. 255 characters is the widest published limit of comparable
 * services. Other characters than visible ASCII may be trimmed or re-encoded in a header, so that two
 * keys become equal.
 */
export function checkIdempotencyKey(key: unknown): string | undefined {
  if (typeof key !== 'string') return 'is not a string'
  if (key === '') return 'is empty'
  if (key.length > 255) return 'has more than 255 characters'
  if (!/^[!-~]+$/.test(key)) return 'has a character that is not visible ASCII (0x21 to 0x7E)'
  return undefined
}

/** References are compared byte by byte, so two that look alike would place two orders. */
export function checkReference(reference: unknown): string | undefined {
  if (typeof reference !== 'string') return 'is not a string'
  if (reference.trim() === '') return 'is blank'
  if (/[\ud800-\udfff]/u.test(reference)) return 'contains a lone surrogate'
  if (/\p{Cc}/u.test(reference)) return 'contains a control character'
  if (/^[\s\p{Cf}]|[\s\p{Cf}]$/u.test(reference))
    return 'begins or ends with white space or an invisible character, and so differs from one that looks the same'
  return undefined
}

/** The tag of each top-level field of a request except `metadata`. */
export type Fingerprint = Readonly<Record<string, string>>

/**
 * Leaves out `metadata`, which may differ between two calls for one order. The tags stay in a record
 * after its body is dropped, so that a conflict can still name the fields that differ.
 *
 * @param slot salt of the tags: one precomputed table cannot find known values in many records
 */
export function fingerprintOf(slot: string, members: readonly Member[]): Fingerprint {
  const salt = saltOf(slot)
  const tags: Member[] = []
  for (const [field, json] of members) if (field !== 'metadata') tags.push([field, tagOf(salt, field, json)])
  // Unlike an assignment, this keeps a field called `__proto__`.
  return Object.fromEntries(tags)
}

export function fieldTag(slot: string, field: string, value: unknown): string {
  return tagOf(saltOf(slot), field, canonicalJson(value))
}

/**
 * 53 bits: a changed field goes unnoticed once in 10^15 changes. Not by SHA-1, which would take
 * most of the time of a tag (measured).
 */
function tagOf(salt: string, field: string, json: string): string {
  // The toString(36) of a number above 2^31 takes ten times as long (measured).
  return BigInt(hashOf('["t1",', salt, ',', quoted(field), ',', json, ']')).toString(36)
}

/** The slot of a nameless order is made of its tags, so it cannot be their salt. */
function saltOf(slot: string): string {
  return quoted(isNameless(slot) ? '' : slot)
}

/** Names a nameless order after its payload. Leaves out `metadata`, too. */
export function digestOf(derive: Derive, members: readonly Member[]): string {
  const fields = members.filter(([field]) => field !== 'metadata')
  return derive(`["f1",{${fields.map(([field, json]) => `${quoted(field)}:${json}`).join()}}]`)
}

export function differingFields(a: Fingerprint, b: Fingerprint): string[] {
  // Maps have no fields of a polluted `Object.prototype`.
  const [before, after] = [new Map(Object.entries(a)), new Map(Object.entries(b))]
  const fields = new Set([...before.keys(), ...after.keys()])
  return [...fields].filter((field) => before.get(field) !== after.get(field)).sort()
}

/**
 * 32 bits detect a rotation of the API key (1 miss in 4 billion), but are too few to search for the
 * API key: many keys have the same tag. With a salt, the tags of two records cannot be compared.
 *
 * @param apiKey null if a proxy adds the API key
 */
export function apiKeyTag(derive: Derive, salt: string, apiKey: string | null): string {
  return apiKey === null ? 'none' : derive(`["a1",${quoted(salt)},${quoted(apiKey)}]`).slice(0, 8)
}

/** Response header in which `customer-ordering-sdk/proxy` names the API key that it adds. */
export const API_KEY_TAG = 'api-key-tag'

/** Request header: the proxy sends the order only if the API key that it adds has this tag. */
export const IF_API_KEY_TAG = 'if-api-key-tag'

const BY_PROXY = 'p'

/** @param proxyTag the proxy's name for its API key, which every response of the proxy contains */
export function proxiedTag(derive: Derive, salt: string, proxyTag: string): string {
  return BY_PROXY + apiKeyTag(derive, salt, proxyTag)
}

export function isProxied(tag: string): boolean {
  return tag.startsWith(BY_PROXY)
}

/**
 * Two 32-bit hashes, of which 53 bits fit a number. Another number shows that a text has changed by
 * accident, but an attacker can find another text with the same number.
 * @param parts of the text, which need not be copied into one
 */
export function hashOf(...parts: readonly string[]): number {
  let high = 0xdeadbeef
  let low = 0x41c6ce57
  for (const part of parts)
    for (let at = 0; at < part.length; at++) {
      const unit = part.charCodeAt(at)
      high = Math.imul(high ^ unit, 0x9e3779b1)
      low = Math.imul(low ^ unit, 0x5f356495)
    }
  high = Math.imul(high ^ (high >>> 16), 0x85ebca6b) ^ Math.imul(low ^ (low >>> 13), 0xc2b2ae35)
  low = Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^ Math.imul(high ^ (high >>> 13), 0xc2b2ae35)
  return 0x100000000 * (low & 0x1fffff) + (high >>> 0)
}

/**
 * Equivalent URLs have the same label (RFC 3986 6.2.2). Leaves out user name, password, query and
 * fragment, because the label is stored.
 */
export function normalizeServer(baseUrl: string): string {
  let url: URL | undefined
  try {
    url = new URL(baseUrl)
  } catch {
    // The runtime's own error quotes the URL, which may contain a password.
  }
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:')
    throw new TypeError('baseUrl is not an absolute http or https address')
  const host = url.hostname.replace(/\.$/, '')
  const path = url.pathname.replace(/%[0-9a-f]{2}/gi, normalizedEscape).replace(/\/+$/, '')
  return `${url.protocol}//${host}${url.port === '' ? '' : `:${url.port}`}${path}`
}

/** Decodes characters that never need an escape (RFC 3986 2.3). */
function normalizedEscape(escaped: string): string {
  const character = String.fromCharCode(Number.parseInt(escaped.slice(1), 16))
  return /[\w.~-]/.test(character) ? character : escaped.toUpperCase()
}
