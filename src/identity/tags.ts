/** Short hashes that tell whether two payloads, or two API keys, are the same. */
import { canonicalJson } from './canonical.ts'
import { type Derive, isNameless } from './keys.ts'

/** The tag of each top-level field of a request except `metadata`. Equal for equal payloads. */
export type Fingerprint = Readonly<Record<string, string>>

/**
 * Leaves out `metadata`, which may differ between two calls for one order. The tags stay in a record
 * after its body is dropped, so that a conflict can still name the fields that differ.
 *
 * @param slot salt of the tags: one precomputed table cannot find known values in many records
 * @param members canonical JSON of each field
 */
export function fingerprintOf(
  derive: Derive,
  slot: string,
  members: ReadonlyMap<string, string>,
): Fingerprint {
  const salt = saltOf(slot)
  const tags: [string, string][] = []
  for (const [field, json] of members)
    if (field !== 'metadata') tags.push([field, tagOf(derive, salt, field, json)])
  // An assignment would lose a field called `__proto__`.
  return Object.fromEntries(tags)
}

export function fieldTag(derive: Derive, slot: string, field: string, value: unknown): string {
  return tagOf(derive, saltOf(slot), field, canonicalJson(value))
}

/** 48 bits: a changed field goes unnoticed once in 10^14 changes. */
function tagOf(derive: Derive, salt: string, field: string, json: string): string {
  const hash = derive(`["t1",${salt},${canonicalJson(field)},${json}]`)
  return hash.slice(0, 8) + hash.slice(9, 13)
}

/** The slot of a nameless order is made of its tags, so it cannot be their salt. */
function saltOf(slot: string): string {
  return canonicalJson(isNameless(slot) ? '' : slot)
}

/** Names a nameless order after its payload. Leaves out `metadata`, too. */
export function digestOf(derive: Derive, members: ReadonlyMap<string, string>): string {
  const fields = [...members].filter(([field]) => field !== 'metadata')
  return derive(`["f1",{${fields.map(([field, json]) => `${canonicalJson(field)}:${json}`).join(',')}}]`)
}

/** Returns the names of the fields that differ. Empty for equal payloads. */
export function differingFields(a: Fingerprint, b: Fingerprint): string[] {
  const fields = new Set([...Object.keys(a), ...Object.keys(b)])
  return [...fields].filter((field) => own(a, field) !== own(b, field)).sort()
}

function own(fingerprint: Fingerprint, field: string): string | undefined {
  return Object.hasOwn(fingerprint, field) ? fingerprint[field] : undefined
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
  return apiKey === null ? 'none' : derive(canonicalJson(['a1', salt, apiKey])).slice(0, 8)
}

const BY_PROXY = 'p'

/** @param proxyTag the proxy's name for its API key, which every response of the proxy contains */
export function proxiedTag(derive: Derive, salt: string, proxyTag: string): string {
  return BY_PROXY + apiKeyTag(derive, salt, proxyTag)
}

export function isProxied(tag: string): boolean {
  return tag.startsWith(BY_PROXY)
}
