import type { SandboxBehaviour } from './behaviour.ts'
import type { JsonReading } from './json.ts'
import type { Random } from './random.ts'
import type { SandboxApiKey, SandboxPermission, Tables } from './state.ts'
import type { Refusal } from './wire.ts'

/** Waits; rejects with the signal's reason once the signal fires. */
export type SandboxSleep = (ms: number, signal?: AbortSignal) => Promise<void>

/**
 * Everything that the endpoints use. `tables` and `behaviour` may be replaced while a creation
 * runs, but the creation continues with the objects with which it began.
 */
export interface World {
  tables: Tables
  behaviour: SandboxBehaviour
  readonly now: () => number
  readonly sleep: SandboxSleep
  readonly ids: Random
  readonly lists: Random
  /** Separate from `ids`, so that reading does not change the ids of later orders. */
  readonly requestIds: Random
}

/** The parts of a request that the endpoints read. */
export interface Call {
  readonly authorization: string | null
  readonly idempotencyKey: string | null
  readonly contentType: string | null
  readonly body: string
  /** Result of reading the body as JSON. */
  readonly reading: JsonReading
}

/** Returns the API key of an Authorization header, even if the key is revoked. */
export function findApiKey(tables: Tables, authorization: string | null): SandboxApiKey | undefined {
  const secret = /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1]
  return secret === undefined ? undefined : tables.apiKeys.get(secret)
}

/** Returns the refusal if this API key lacks the permission, otherwise null. */
export function refuseApiKey(
  apiKey: SandboxApiKey | undefined,
  permission: SandboxPermission,
): Refusal | null {
  if (apiKey === undefined || apiKey.revoked)
    return { status: 401, code: 'UNAUTHORIZED', message: 'Missing or invalid API key.' }
  if (!apiKey.permissions.includes(permission))
    return { status: 403, code: 'FORBIDDEN', message: `This API key lacks the permission ${permission}.` }
  return null
}
