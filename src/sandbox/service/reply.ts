import type { FaultAction, SandboxOperation } from './faults.ts'

/** How an answer travels. Byte counts are counts of the encoded body. */
export type SandboxDelivery =
  | { readonly type: 'complete' }
  /** The connection is refused. */
  | { readonly type: 'refuse' }
  /** The connection is reset before the first byte of the answer. */
  | { readonly type: 'drop' }
  /** Nothing is ever answered. */
  | { readonly type: 'stall' }
  /** Headers and the first bytes of the body, then a reset, or a normal end if `cleanly`. */
  | { readonly type: 'cut'; readonly after: number; readonly cleanly: boolean }
  /** Headers and the first bytes of the body, then silence. */
  | { readonly type: 'stallBody'; readonly after: number }
  /** `bytes` spaces, then the body. */
  | { readonly type: 'huge'; readonly bytes: number; readonly gzip: boolean }

/** What was sent back, or would have been had the caller seen it. */
export interface SandboxResponse {
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** What was asked and how it went. The API key itself is never in here. */
export interface SandboxRequest {
  /** 1 for the first request, also after a `sandbox.reset()`. */
  readonly number: number
  readonly operation: SandboxOperation | null
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly idempotencyKey: string | null
  /** Label of the API key, or null if it is missing or unknown. */
  readonly apiKeyId: string | null
  /** Lower-case names; `authorization` is left out. */
  readonly headers: Readonly<Record<string, string>>
  /** The body as it came, byte for byte. */
  readonly body: string
  /** Milliseconds since the epoch. */
  readonly at: number
  /** The status answered; `'running'` until then, `'dropped'` if the caller never saw one. */
  readonly status: number | 'running' | 'dropped'
  /** What was sent, also where the caller never saw it; null until then. */
  readonly response: SandboxResponse | null
  /** How the answer travelled. */
  readonly delivery: SandboxDelivery['type']
  /** Whether this very request debited a wallet. Replays do not. */
  readonly charged: boolean
  /** Actions of the fault rules that acted on it, in the order of the rules; empty if all went as it should. */
  readonly faults: readonly FaultAction['type'][]
}

/** An answer as a description: `sandbox.fetch` and the real server both act it out. */
export interface SandboxReply {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly delivery: SandboxDelivery
  /** The entry in `sandbox.requests`. */
  readonly request: SandboxRequest
}

/** A request as plain values, for adapters that have no `Request` at hand. */
export interface SandboxMessage {
  readonly method: string
  /** Absolute URL, or a path from the root of `baseUrl` on. */
  readonly url: string
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Fires when the caller goes away. Processing goes on, as it does on a real server; only answers stop waiting. */
  readonly signal?: AbortSignal
}
