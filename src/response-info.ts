import type { SupportReference } from './errors.ts'

/** What came with a result. */
export interface ResponseInfo {
  /** HTTP status of the answer; absent where a remembered order was returned without a request. */
  readonly status?: number
  /** Request id out of the answer's headers. */
  readonly requestId?: string
  /** Headers of the answer; empty where there was no request. */
  readonly headers: Headers
  /** HTTP requests made by the call. */
  readonly attempts: number
  /** Milliseconds the call took. */
  readonly durationMs: number
  /** Orders: the Idempotency-Key. */
  readonly idempotencyKey?: string
  /** Orders: true if the order existed before this call, false if this call made it, absent when nobody can know. */
  readonly replayed?: boolean
  /** Orders: what to quote to the service's support. */
  readonly supportReference?: SupportReference
}

/** What came with a result, or what makes it when somebody asks, which is seldom. */
export type InfoSource = ResponseInfo | (() => ResponseInfo)

/** What came with a result, made now if need be. */
export function infoFrom(source: InfoSource): ResponseInfo {
  return typeof source === 'function' ? source() : source
}

// Beside the results and not on them, so that a result is exactly what the service sent and may even be frozen.
const known = new WeakMap<object, InfoSource>()

/** Remembers what came with a result. A result that is not an object cannot carry anything. */
export function attachInfo(result: unknown, info: InfoSource): void {
  if (typeof result === 'object' && result !== null) known.set(result, info)
}

/**
 * What came with a result of this client: status, request id, headers, attempts, and for orders the key, whether it
 * was a replay and what to quote to support. Undefined for anything that is not a result (copies included).
 */
export function responseInfo(result: unknown): ResponseInfo | undefined {
  if (typeof result !== 'object' || result === null) return undefined
  const source = known.get(result)
  if (typeof source !== 'function') return source
  const info = source()
  known.set(result, info)
  return info
}
