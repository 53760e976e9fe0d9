import type { Sandbox } from '../sandbox.ts'
import {
  defaultBehaviour,
  type SandboxBehaviour,
  type SandboxPreset,
  sandboxPresets,
} from '../service/behaviour.ts'
import type { SandboxFaultStatus } from '../service/faults.ts'
import { sortedJson } from '../service/json.ts'
import type { SandboxRequest } from '../service/reply.ts'
import type {
  SandboxApiKey,
  SandboxCharge,
  SandboxCustomer,
  SandboxKeyAnswer,
  SandboxOrder,
  SandboxService,
} from '../service/state.ts'
import { orderBody } from '../service/wire.ts'

/** The newest rows of a long table. */
export interface Newest<Row> {
  readonly total: number
  /** Newest first. */
  readonly newest: readonly Row[]
}

/** A row of the idempotency table without its payload. */
export interface KeySummary {
  readonly scope: string
  readonly key: string
  /** What the next request with this key gets. */
  readonly answer: 'running' | 'died' | SandboxKeyAnswer['kind']
  readonly startedAt: number
}

/** The data of the live page and of `GET /__sandbox/`. It contains no API key in full. */
export interface Overview {
  /** Name of the preset that equals the current switches, or null. */
  readonly preset: SandboxPreset | null
  readonly behaviour: SandboxBehaviour
  readonly customers: readonly SandboxCustomer[]
  /** `secret` is shortened. */
  readonly apiKeys: readonly SandboxApiKey[]
  readonly services: readonly SandboxService[]
  /** Each order has the status that callers see. */
  readonly orders: Newest<SandboxOrder>
  readonly keys: Newest<KeySummary>
  readonly ledger: Newest<SandboxCharge>
  readonly faults: readonly SandboxFaultStatus[]
}

/** Maximum number of rows shown per table. */
const SHOWN = 50

/** Reads a sandbox for the live page. */
export function overviewOf(sandbox: Sandbox, now: number): Overview {
  const { behaviour, ledger, faults } = sandbox
  const keys = sandbox.keys().map(
    ({ scope, key, answer, orphanedAt, startedAt }): KeySummary => ({
      scope,
      key,
      answer: answer?.kind ?? (orphanedAt === null ? 'running' : 'died'),
      startedAt,
    }),
  )
  const orders = newest(sandbox.orders())
  return {
    preset: presetOf(behaviour),
    behaviour,
    customers: sandbox.customers(),
    apiKeys: sandbox.apiKeys().map(withoutSecret),
    services: sandbox.services(),
    orders: {
      ...orders,
      newest: orders.newest.map((order) => ({ ...order, status: orderBody(order, behaviour, now).status })),
    },
    keys: newest(keys),
    ledger: newest(ledger),
    faults: faults.list(),
  }
}

/** A request as the live page shows it: long bodies are truncated. */
export function summaryOf(request: SandboxRequest): SandboxRequest {
  const { body, response } = request
  return {
    ...request,
    body: cut(body),
    response: response && { ...response, body: cut(response.body) },
  }
}

function cut(text: string): string {
  return text.length > 2000 ? `${text.slice(0, 2000)}…` : text
}

/**
 * Cuts the secret of an API key to at most its first quarter, so that the result is safe to show.
 */
export function withoutSecret(apiKey: SandboxApiKey): SandboxApiKey {
  const { secret } = apiKey
  return { ...apiKey, secret: `${secret.slice(0, Math.min(12, secret.length >> 2))}…` }
}

/** Returns the name of the preset that equals these switches, or null. */
export function presetOf(behaviour: SandboxBehaviour): SandboxPreset | null {
  const text = sortedJson(behaviour)
  for (const [name, changes] of Object.entries(sandboxPresets))
    if (isPreset(name) && sortedJson({ ...defaultBehaviour, ...changes }) === text) return name
  return null
}

/** True if this is the name of a preset. */
export function isPreset(name: unknown): name is SandboxPreset {
  return typeof name === 'string' && Object.hasOwn(sandboxPresets, name)
}

function newest<Row>(rows: readonly Row[]): Newest<Row> {
  return { total: rows.length, newest: rows.slice(-SHOWN).reverse() }
}
