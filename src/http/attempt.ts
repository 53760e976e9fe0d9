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
  /** Milliseconds until the attempt is given up, from now to the last byte of the body. */
  readonly timeout: number
  readonly signal?: AbortSignal | undefined
  /** Most bytes of a successful body that are read, after decompression; see {@link MAX_ERROR_BYTES} for others. */
  readonly maxBytes: number
  /** True once it must not be sent any more, for a transport that can ask at the last moment. */
  readonly isLate?: (() => boolean) | undefined
}

/** Most bytes of an error's body that are read, after decompression. */
export const MAX_ERROR_BYTES: number = 256 * 1024

/** Milliseconds in which a transport hands over what it has read of a body that was discarded. */
const LET_GO = 100

/** Why a body is not there as a whole. */
export type BodyProblem = NonNullable<BodyText['problem']> | 'timeout' | 'aborted'

/** How one attempt ended. `unsent` is claimed only where the transport proves that no byte of the request left. */
export type AttemptResult =
  | {
      readonly kind: 'answer'
      readonly status: number
      readonly headers: ResponseHeaders
      /** What was read of the body, decoded; complete unless `problem` says otherwise. */
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

/** Performs one attempt and says how it ended; never throws. */
export type Send = (request: AttemptRequest) => Promise<AttemptResult>

/** The result, if it has the status and headers of an answer. Not by `'headers' in`: every object may inherit one. */
export function answerOf(
  result: AttemptResult | undefined,
): Extract<AttemptResult, { readonly headers: ResponseHeaders }> | undefined {
  return result?.kind === 'answer' || result?.kind === 'redirect' ? result : undefined
}

/**
 * Attempts over any transport: their time, the caller's signal, what is read of a response, and
 * what a failure proves.
 */
export function sendOver(transport: Transport, runtime: Runtime): Send {
  return async (request) => {
    if (request.signal?.aborted === true) return { kind: 'aborted' }
    const controller = new AbortController()
    let stopped: 'timeout' | 'aborted' | undefined
    // Ends the wait for whatever it waits for: a transport that ignores its signal must not keep the caller waiting.
    let leave = (): void => {}
    const stop = (why: 'timeout' | 'aborted'): void => {
      if (stopped !== undefined) return
      stopped = why
      controller.abort()
      leave()
    }
    const onAbort = (): void => stop('aborted')
    request.signal?.addEventListener('abort', onAbort, { once: true })
    // A plain timer: AbortSignal.any with AbortSignal.timeout was measured never to fire on some runtimes.
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
      // The request was sent, whatever a transport of the caller's says of the response: no proof of anything.
      if (!Number.isInteger(status)) {
        discard(response)
        const detail = detailOf(new TypeError('the transport gave no status'), false)
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
          // A transport that does not end its read must not keep the caller waiting.
          const cancel = runtime.setTimer(cut, LET_GO)
          reading.then(cancel, cancel)
        }
        // The request was sent: a transport that fails now proves nothing by its error.
        reading.then(resolve, cut)
        // The caller may have given up between the response and this read.
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
        // Without proofs it is code of the caller's: where that threw is all that tells of a bug in it.
        detail = detailOf(error, transport.whyUnsent === undefined)
        unsent = transport.whyUnsent?.(error) ?? false
      } catch {
        // What is thrown may throw again when it is looked at.
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

/** Lets go of a response that nobody reads. Its connection may die of it, which concerns nobody either. */
function discard(response: TransportResponse): void {
  try {
    response.discard()
  } catch {}
}
