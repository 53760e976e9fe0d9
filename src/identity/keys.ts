/**
 * Decides which calls are for the same order, and which key the service gets for that order.
 *
 * Never change a rule in this folder. These rules named all stored records. After a store is lost,
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

const NAMELESS = 'anon:'

/**
 * Calls in one scope with a reference or key are for the same order if and only if they have the
 * same slot. The prefixes prevent a reference, a key and a digest from having the same slot.
 */
export function slotOf(
  externalOrderId: string | undefined,
  idempotencyKey: string | undefined,
  digest: () => string,
): string {
  if (externalOrderId !== undefined) return `ref:${externalOrderId}`
  return idempotencyKey === undefined ? NAMELESS + digest() : `key:${idempotencyKey}`
}

/** True for an order without a reference or key. Identical nameless orders share one slot. */
export function isNameless(slot: string): boolean {
  return slot.startsWith(NAMELESS)
}

/** The reference in a slot, or undefined if the order has another name. */
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
 * repeated order (docs/guide/lost-store.md).
 *
 * The key does not depend on the payload. If it did, the same reference with another quantity would
 * have another key, and the wallet would be charged twice.
 */
export function derivedKey(derive: Derive, parts: DerivedKeyParts): string {
  return derive(canonicalJson(['k1', parts.server, parts.account, parts.externalOrderId, parts.generation]))
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

/**
 * Returns what is wrong with a reference, without quoting it. References are compared byte by byte,
 * so two that look alike would place two orders.
 */
export function checkReference(reference: unknown): string | undefined {
  if (typeof reference !== 'string') return 'is not a string'
  if (reference.trim() === '') return 'is blank'
  if (/[\ud800-\udfff]/u.test(reference)) return 'contains a lone surrogate'
  if (/\p{Cc}/u.test(reference)) return 'contains a control character'
  if (/^[\s\p{Cf}]|[\s\p{Cf}]$/u.test(reference))
    return 'begins or ends with white space or an invisible character, and so differs from a reference that looks the same'
  return undefined
}
