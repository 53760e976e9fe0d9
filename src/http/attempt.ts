import { bare } from '../defined.ts'
import type { Runtime } from '../runtime.ts'
import { detailOf, type FailureDetail } from './proof.ts'
import type { BodyText, ResponseHeaders, Transport, TransportResponse, Unsent } from './transport.ts'

/** What one attempt sends, and how long it may take. */
export interface AttemptRequest {
  readonly method: string
  /** Absolute URL. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
  /** Time limit of the attempt in milliseconds, including the response body. */
  readonly timeout: number
  readonly signal?: AbortSignal | undefined
  /**
   * Maximum number of decompressed bytes to read from the body of a 2xx response. For other
   * responses, the maximum is {@link MAX_ERROR_BYTES}.
   */
  readonly maxBytes: number
  /**
   * Returns true once it is too late to send the request. A transport may check this right before
   * it sends.
   */
  readonly isLate?: (() => boolean) | undefined
}

/** Maximum number of decompressed bytes to read from an error response. */
export const MAX_ERROR_BYTES: number = 256 * 1024

/** After a body is discarded, milliseconds to wait for the part that has already arrived. */
const LET_GO = 100

/** Why a body could not be read completely. */
export type BodyProblem = NonNullable<BodyText['problem']> | 'timeout' | 'aborted'

/**
 * The result of one attempt. `unsent` is false unless the transport proves that no byte of the
 * request was sent.
 */
export type AttemptResult =
  | {
      readonly kind: 'answer'
      readonly status: number
      readonly headers: ResponseHeaders
      /** The decoded body. It is incomplete if `problem` is set. */
      readonly text: string
      readonly problem?: BodyProblem | undefined
    }
  | { readonly kind: 'redirect'; readonly status: number; readonly headers: ResponseHeaders }
  | {
      readonly kind: 'failed'
      readonly unsent: false | Unsent
      /** True if an established connection was lost. */
      readonly closed: boolean
      readonly detail: FailureDetail
    }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'aborted' }

/** Performs one attempt and returns its result. Never throws. */
export type Send = (request: AttemptRequest) => Promise<AttemptResult>

/**
 * Returns the result if the attempt got a response. Does not test `'headers' in result`, because a
 * polluted `Object.prototype` would make that true for every result.
 */
export function answerOf(
  result: AttemptResult | undefined,
): Extract<AttemptResult, { readonly headers: ResponseHeaders }> | undefined {
  return result?.kind === 'answer' || result?.kind === 'redirect' ? result : undefined
}

/**
 * Performs attempts over any transport: limits their time, obeys the caller's signal, reads the
 * body and decides what a failure proves.
 */
export function sendOver(transport: Transport, runtime: Runtime): Send {
  return async (request) => {
    if (request.signal?.aborted === true) return { kind: 'aborted' }
    const controller = new AbortController()
    let stopped: 'timeout' | 'aborted' | undefined
    // Ends the current wait: a transport that ignores its signal must not keep the caller waiting.
    let leave = (): void => {}
    const stop = (why: 'timeout' | 'aborted'): void => {
      if (stopped !== undefined) return
      stopped = why
      controller.abort()
      leave()
    }
    const onAbort = (): void => stop('aborted')
    request.signal?.addEventListener('abort', onAbort, { once: true })
    // Uses a plain timer: on some runtimes, AbortSignal.any with AbortSignal.timeout never fires
    // (measured).
    const cancelTimer = runtime.setTimer(() => stop('timeout'), request.timeout)
    try {
      const pending = transport.send({
        method: request.method,
        url: request.url,
        headers: request.headers,
        body: request.body,
        signal: controller.signal,
        isLate: request.isLate,
      })
      const response = await new Promise<TransportResponse | 'interrupted'>((resolve, reject) => {
        leave = () => resolve('interrupted')
        pending.then(resolve, reject)
      })
      if (response === 'interrupted') {
        pending.then(discard, () => {})
        return { kind: stopped ?? 'aborted' }
      }
      const { status, headers } = response
      // A custom transport may return a response without a status. Such a response does not prove
      // whether the service processed the request.
      if (!Number.isInteger(status)) {
        discard(response)
        const detail = detailOf(new TypeError('the transport returned no status'), false)
        return { kind: 'failed', unsent: false, closed: false, detail }
      }
      if (status === 0 || (status >= 300 && status < 400)) {
        discard(response)
        return { kind: 'redirect', status, headers }
      }
      const most = status >= 200 && status < 300 ? request.maxBytes : MAX_ERROR_BYTES
      const reading = (async () => await response.read(most))()
      const { text, problem } = await new Promise<BodyText>((resolve) => {
        const cut = (): void => resolve({ text: '', problem: 'cut' })
        leave = () => {
          discard(response)
          // A transport whose read never ends must not keep the caller waiting.
          const cancel = runtime.setTimer(cut, LET_GO)
          reading.then(cancel, cancel)
        }
        // After a response, a transport error no longer proves that nothing was sent.
        reading.then(resolve, cut)
        // The caller may have aborted between the response and this read.
        if (stopped !== undefined) leave()
      })
      return {
        kind: 'answer',
        status,
        headers,
        text,
        problem: problem === 'cut' ? (stopped ?? problem) : problem,
      }
    } catch (error) {
      if (stopped !== undefined) return { kind: stopped }
      let detail: FailureDetail = bare({ name: 'Error' })
      let unsent: false | Unsent = false
      try {
        // A transport without `whyUnsent` is the caller's code, and stack frames help to find bugs
        // in it.
        detail = detailOf(error, transport.whyUnsent === undefined)
        unsent = transport.whyUnsent?.(error) ?? false
      } catch {
        // Reading the fields of the thrown value may itself throw.
      }
      const { code } = detail
      const closed = code === 'ECONNRESET' || code === 'EPIPE' || code === 'UND_ERR_SOCKET'
      return { kind: 'failed', unsent, closed, detail }
    } finally {
      cancelTimer()
      request.signal?.removeEventListener('abort', onAbort)
    }
  }
}

/** Discards an unread response. This may close the connection, which is harmless. */
function discard(response: TransportResponse): void {
  try {
    response.discard()
  } catch {}
}
