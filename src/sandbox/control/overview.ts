import type { Sandbox } from '../sandbox.ts'
import {
  defaultBehaviour,
  isPreset,
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

export interface Newest<Row> {
  readonly total: number
  /** Newest first. */
  readonly newest: readonly Row[]
}

export interface KeySummary {
  readonly scope: string
  readonly key: string
  /** What a repeat of the request gets, unless the entry has expired. */
  readonly answer: 'running' | 'died' | SandboxKeyAnswer['kind']
  readonly startedAt: number
}

export interface Overview {
  /** Null if the current switches match no preset. */
  readonly preset: SandboxPreset | null
  readonly behaviour: SandboxBehaviour
  readonly customers: readonly SandboxCustomer[]
  readonly apiKeys: readonly SandboxApiKey[]
  readonly services: readonly SandboxService[]
  /** Each `status` is the one that the API returns now. */
  readonly orders: Newest<SandboxOrder>
  readonly keys: Newest<KeySummary>
  readonly ledger: Newest<SandboxCharge>
  readonly faults: readonly SandboxFaultStatus[]
}

/** All that the live page shows. */
export interface PageContent {
  readonly overview: Overview
  /** The newest requests, oldest first. */
  readonly requests: readonly SandboxRequest[]
}

const MAX_ROWS = 50
const MAX_REQUESTS = 200

export function pageContent(sandbox: Sandbox, now: number): PageContent {
  const requests = sandbox.requests.slice(-MAX_REQUESTS).map(withShortBodies)
  return { overview: overviewOf(sandbox, now), requests }
}

function overviewOf(sandbox: Sandbox, now: number): Overview {
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
    apiKeys: sandbox.apiKeys(),
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

function withShortBodies(request: SandboxRequest): SandboxRequest {
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

export function presetOf(behaviour: SandboxBehaviour): SandboxPreset | null {
  const text = sortedJson(behaviour)
  for (const [name, changes] of Object.entries(sandboxPresets))
    if (isPreset(name) && sortedJson({ ...defaultBehaviour, ...changes }) === text) return name
  return null
}

function newest<Row>(rows: readonly Row[]): Newest<Row> {
  return { total: rows.length, newest: rows.slice(-MAX_ROWS).reverse() }
}
