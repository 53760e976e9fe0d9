import type { FaultAction, SandboxOperation } from './faults.ts'

/** How a response is delivered. Byte counts refer to the body in UTF-8. */
export type SandboxDelivery =
  | { readonly type: 'complete' }
  /** The connection is refused. */
  | { readonly type: 'refuse' }
  /** The connection is reset before the first byte of the response. */
  | { readonly type: 'drop' }
  /** No response is ever sent. */
  | { readonly type: 'stall' }
  /**
   * The headers and `after` bytes of the body are sent.
   *
   * Then the connection breaks, or the response ends normally if `cleanly` is true.
   */
  | { readonly type: 'cut'; readonly after: number; readonly cleanly: boolean }
  /** The headers and `after` bytes of the body are sent, then nothing more. */
  | { readonly type: 'stallBody'; readonly after: number }

/** The response that was sent, or that a fault withheld. */
export interface SandboxResponse {
  /** Header values by lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  /** The whole body, even if only part of it was sent. */
  readonly body: string
}

/** A request and its outcome, without the API key. */
export interface SandboxRequest {
  /** Number of the request. Numbering starts at 1, and restarts after `sandbox.reset()`. */
  readonly number: number
  /** Endpoint, or null if the API has no such path or method. */
  readonly operation: SandboxOperation | null
  /** HTTP method. */
  readonly method: string
  /** Path and query. */
  readonly path: string
  /** Idempotency-Key, or null. */
  readonly idempotencyKey: string | null
  /** Label of the API key, or null if the API key is missing or unknown. */
  readonly apiKeyId: string | null
  /** Header values by lower-case name, without `authorization`. */
  readonly headers: Readonly<Record<string, string>>
  /** The body as received, unparsed. */
  readonly body: string
  /** Time of the request, in milliseconds since the epoch. */
  readonly at: number
  /**
   * The status of the response.
   *
   * `'running'` before the response, `'dropped'` if the caller never got a response.
   */
  readonly status: number | 'running' | 'dropped'
  /**
   * The response, even if the caller never got it.
   *
   * Null while the request is running, and after the caller disconnected during a delay.
   */
  readonly response: SandboxResponse | null
  /** How the response was delivered. */
  readonly delivery: SandboxDelivery['type']
  /** True if this request debited a wallet. False for a replay. */
  readonly charged: boolean
  /** Actions of the fault rules that applied to the request, in the order of the rules. */
  readonly faults: readonly FaultAction['type'][]
}

/** A response, and how `sandbox.fetch` or the Node server delivers it. */
export interface SandboxReply {
  /** HTTP status. */
  readonly status: number
  /** Header values by lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  /** The whole body, even if only part of it is delivered. */
  readonly body: string
  /** How the response is delivered. */
  readonly delivery: SandboxDelivery
  /** The entry in `sandbox.requests`. */
  readonly request: SandboxRequest
}

/** A request as plain values, for adapters that have no `Request` object. */
export interface SandboxMessage {
  /** HTTP method. */
  readonly method: string
  /** Absolute URL, or a path from the root of `baseUrl`. */
  readonly url: string
  /** Header values by lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  /** The body, or an empty string. */
  readonly body: string
  /**
   * Fires when the caller disconnects.
   *
   * Processing continues, as on a real server, but a delayed response is no longer sent.
   */
  readonly signal?: AbortSignal
}
