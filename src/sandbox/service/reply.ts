import type { FaultAction, SandboxOperation } from './faults.ts'

/** How a response is delivered. Byte counts refer to the encoded body. */
export type SandboxDelivery =
  | { readonly type: 'complete' }
  /** The connection is refused. */
  | { readonly type: 'refuse' }
  /** The connection is reset before the first byte of the response. */
  | { readonly type: 'drop' }
  /** No response is ever sent. */
  | { readonly type: 'stall' }
  /** Headers and the first bytes of the body, then a reset, or a normal end if `cleanly`. */
  | { readonly type: 'cut'; readonly after: number; readonly cleanly: boolean }
  /** Headers and the first bytes of the body, then silence. */
  | { readonly type: 'stallBody'; readonly after: number }
  /** `bytes` spaces, then the body. */
  | { readonly type: 'huge'; readonly bytes: number; readonly gzip: boolean }

/** The response as sent, or, if it was lost, as the caller would have seen it. */
export interface SandboxResponse {
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** The body as sent. */
  readonly body: string
}

/** A request and its outcome. It never contains the API key. */
export interface SandboxRequest {
  /** 1 for the first request, and again after `sandbox.reset()`. */
  readonly number: number
  /** Endpoint, or null if there is none. */
  readonly operation: SandboxOperation | null
  /** HTTP method. */
  readonly method: string
  /** Path and query. */
  readonly path: string
  /** Idempotency-Key, or null. */
  readonly idempotencyKey: string | null
  /** Label of the API key, or null if it is missing or unknown. */
  readonly apiKeyId: string | null
  /** Lower-case names; `authorization` is left out. */
  readonly headers: Readonly<Record<string, string>>
  /** The body as received, byte for byte. */
  readonly body: string
  /** Milliseconds since the epoch. */
  readonly at: number
  /**
   * The status of the response. `'running'` before the response, `'dropped'` if the caller never
   * got one.
   */
  readonly status: number | 'running' | 'dropped'
  /** The response, even if the caller never got it. Null while the request is running. */
  readonly response: SandboxResponse | null
  /** How the response was delivered. */
  readonly delivery: SandboxDelivery['type']
  /** True if this request debited a wallet. Replays do not. */
  readonly charged: boolean
  /** Actions of the fault rules that applied to the request, in the order of the rules. */
  readonly faults: readonly FaultAction['type'][]
}

/** A description of a response, which `sandbox.fetch` and the real server carry out. */
export interface SandboxReply {
  /** HTTP status. */
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** The whole body, even if less of it is delivered. */
  readonly body: string
  /** How the response is delivered. */
  readonly delivery: SandboxDelivery
  /** The entry in `sandbox.requests`. */
  readonly request: SandboxRequest
}

/** A request as plain values, for adapters without a `Request`. */
export interface SandboxMessage {
  /** HTTP method. */
  readonly method: string
  /** Absolute URL, or a path from the root of `baseUrl`. */
  readonly url: string
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** The body, empty if there is none. */
  readonly body: string
  /**
   * Fires when the caller disconnects. As on a real server, processing continues. Only the response
   * stops waiting.
   */
  readonly signal?: AbortSignal
}
