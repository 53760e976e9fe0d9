import type { SandboxBehaviour } from './behaviour.ts'
import { isJsonObject, readJson, sortedJson } from './json.ts'
import type { Call } from './routing.ts'
import {
  keyRow,
  type SandboxApiKey,
  type SandboxKeyAnswer,
  type SandboxKeyEntry,
  type Tables,
} from './state.ts'
import type { Refusal } from './wire.ts'
import { findApiKey, type World } from './world.ts'

const VISIBLE = /^[\x21-\x7e]{1,255}$/
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export function refuseKeyText(key: string | null, behaviour: SandboxBehaviour): Refusal | null {
  const problem = (message: string): Refusal => ({ status: 400, code: 'INVALID_REQUEST', message })
  if (key === null || key === '') return problem('The Idempotency-Key header is required.')
  if (!VISIBLE.test(key)) return problem('Idempotency-Key must be 1 to 255 visible ASCII characters.')
  if (behaviour.keyFormat === 'uuid' && !UUID.test(key)) return problem('Idempotency-Key must be a UUID.')
  return null
}

export function scopeOf(apiKey: SandboxApiKey, behaviour: SandboxBehaviour): string {
  return behaviour.keyScope === 'customer' ? apiKey.customerId : apiKey.id
}

export function isSamePayload(first: string, second: string, behaviour: SandboxBehaviour): boolean {
  if (first === second) return true
  if (behaviour.payloadEquality === 'bytes') return false
  const [a, b] = [readJson(first), readJson(second)]
  if (!a.ok || !b.ok) return false
  const shown = behaviour.payloadEquality === 'json' ? (body: unknown) => body : withoutMetadata
  return sortedJson(shown(a.value)) === sortedJson(shown(b.value))
}

function withoutMetadata(body: unknown): unknown {
  if (!isJsonObject(body)) return body
  const { metadata: _, ...rest } = body
  return rest
}

export function forgetExpired(tables: Tables, row: string, behaviour: SandboxBehaviour, now: number): void {
  const entry = tables.keys.get(row)
  if (entry === undefined) return
  const { keyLifetime, orphanedMarkLifetime } = behaviour
  const expired = keyLifetime !== null && now - entry.startedAt >= keyLifetime
  const orphan =
    entry.answer === null &&
    entry.orphanedAt !== null &&
    orphanedMarkLifetime !== null &&
    now - entry.orphanedAt >= orphanedMarkLifetime
  if ((expired || orphan) && !isRunning(entry)) tables.keys.delete(row)
}

/** Does not forget the keys of requests in progress. */
export function forgetKeys(tables: Tables): void {
  for (const [row, entry] of tables.keys) if (!isRunning(entry)) tables.keys.delete(row)
}

/** Rule 3 of the API document: while a request runs, a repeat of it gets IDEMPOTENCY_IN_PROGRESS. */
function isRunning({ answer, orphanedAt }: SandboxKeyEntry): boolean {
  return answer === null && orphanedAt === null
}

export function rememberFault(
  world: World,
  call: Call,
  answer: Extract<SandboxKeyAnswer, { kind: 'fault' }>,
  charged: boolean,
): void {
  const { tables, behaviour } = world
  const apiKey = findApiKey(tables, call.authorization)
  if (apiKey === undefined || apiKey.revoked || refuseKeyText(call.idempotencyKey, behaviour) !== null) return
  const scope = scopeOf(apiKey, behaviour)
  const key = call.idempotencyKey ?? ''
  const row = keyRow(scope, key)
  forgetExpired(tables, row, behaviour, world.now())
  const known = tables.keys.get(row)
  // Without a charge, keep an existing row: it may hold the response to an earlier request.
  if (known !== undefined && !charged) return
  const entry = { scope, key, payload: call.body, startedAt: world.now(), orphanedAt: null, answer }
  tables.keys.set(row, { ...(known ?? entry), answer })
}
