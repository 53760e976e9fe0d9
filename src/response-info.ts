import { isObject } from './defined.ts'
import type { SupportReference } from './errors/classes.ts'

/** Facts about the response behind a result: everything except its data. */
export interface ResponseInfo {
  /** HTTP status of the response. Absent if a remembered order was returned without a request. */
  readonly status?: number
  /** Request id from the response's headers. */
  readonly requestId?: string
  /** Headers of the response. Empty if there was no request. */
  readonly headers: Headers
  /** Number of HTTP requests that the call tried to send. */
  readonly attempts: number
  /** Milliseconds that the call took. */
  readonly durationMs: number
  /** Orders: Idempotency-Key of the order. */
  readonly idempotencyKey?: string
  /**
   * Orders: true if the order existed before this call, as far as is known; false if this call created it;
   * absent if that is unknown.
   */
  readonly replayed?: boolean
  /** Orders: ids to quote to the service's support. */
  readonly supportReference?: SupportReference
}

/** The function creates the info on first use, because few callers read it. */
export type InfoSource = ResponseInfo | (() => ResponseInfo)

export function infoFrom(source: InfoSource): ResponseInfo {
  return typeof source === 'function' ? source() : source
}

// Not a property of the result: a result has only the service's fields, and may be frozen.
const known = new WeakMap<object, InfoSource>()

export function attachInfo(result: unknown, info: InfoSource): void {
  if (isObject(result)) known.set(result, info)
}

/**
 * Returns facts about the response behind a result of this client: status, request id, headers,
 * attempts.
 *
 * For orders, also the key, whether the order existed before, and the ids to quote to support.
 * Returns undefined for any other value, including a copy of a result.
 *
 * @example
 * const { requestId, attempts, replayed } = responseInfo(order) ?? {}
 */
export function responseInfo(result: unknown): ResponseInfo | undefined {
  if (!isObject(result)) return undefined
  const source = known.get(result)
  if (typeof source !== 'function') return source
  const info = source()
  known.set(result, info)
  return info
}
