import type { SandboxBehaviour } from './behaviour.ts'
import type { Random } from './random.ts'
import type { SandboxApiKey, SandboxPermission, Tables } from './state.ts'
import type { Refusal } from './wire.ts'

/** Waits `ms` milliseconds. Rejects with the signal's reason if the signal fires first. */
export type SandboxSleep = (ms: number, signal?: AbortSignal) => Promise<void>

/**
 * `tables` and `behaviour` may be replaced while a creation runs. The creation must continue with
 * the objects with which it began, so read both fields once, at its start.
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

/** Also finds revoked keys, which `refuseApiKey` rejects. */
export function findApiKey(tables: Tables, authorization: string | null): SandboxApiKey | undefined {
  const secret = /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1]
  return secret === undefined ? undefined : tables.apiKeys.get(secret)
}

export const UNAUTHORIZED: Refusal = {
  status: 401,
  code: 'UNAUTHORIZED',
  message: 'Missing or invalid API key.',
}

export function refuseApiKey(
  apiKey: SandboxApiKey | undefined,
  permission: SandboxPermission,
): Refusal | null {
  if (apiKey === undefined || apiKey.revoked) return UNAUTHORIZED
  if (!apiKey.permissions.includes(permission))
    return { status: 403, code: 'FORBIDDEN', message: `This API key lacks the permission ${permission}.` }
  return null
}
