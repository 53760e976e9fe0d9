/** One attempt: sends a request once, and reads the response within the time and size limits. */
import { bare, defined, isObject, ownValue, takeRejection } from '../defined.ts'
import type { Runtime } from '../runtime.ts'
import { whyEnded } from './deadline.ts'
import { type FailureDetail, wordsOf } from './node.ts'
import type {
  BodyText,
  ResponseHeaders,
  Transport,
  TransportRequest,
  TransportResponse,
  Unsent,
} from './transport.ts'

export interface AttemptRequest extends Omit<TransportRequest, 'signal'> {
  readonly timeout: number
  readonly signal: AbortSignal | undefined
  /**
   * Maximum number of decompressed bytes of a 2xx body. For other responses, the maximum is
   * {@link MAX_ERROR_BYTES}.
   */
  readonly maxBytes: number
}

export const MAX_ERROR_BYTES: number = 256 * 1024

/** After a body is discarded, milliseconds to wait for the part that has already arrived. */
const DISCARD_WAIT = 100

const CUT: BodyText = { text: '', problem: 'cut' }
const PROBLEMS: readonly unknown[] = [undefined, 'cut', 'too_large', 'undecodable']
const REASONS: readonly Unsent[] = ['unreachable', 'certificate', 'transport_closed', 'late']

export type BodyProblem = NonNullable<BodyText['problem']> | 'timeout' | 'aborted'

export type AttemptResult =
  | {
      readonly kind: 'answer'
      readonly status: number
      readonly headers: ResponseHeaders
      /** The decoded body, which is incomplete if `problem` is set. */
      readonly text: string
      readonly problem?: BodyProblem | undefined
    }
  | { readonly kind: 'redirect'; readonly status: number; readonly headers: ResponseHeaders }
  | {
      readonly kind: 'failed'
      /** False unless the transport proves that no byte of the request was sent. */
      readonly unsent: false | Unsent
      /** True if an established connection was lost. */
      readonly closed: boolean
      readonly detail: FailureDetail
      /** An error by which a framework steers the rendering of a page. The call throws it unchanged. */
      readonly signpost?: unknown
    }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'aborted' }

/** Performs one attempt. Never rejects. */
export type Send = (request: AttemptRequest) => Promise<AttemptResult>

export function answerOf(
  result: AttemptResult | undefined,
): Extract<AttemptResult, { readonly headers: ResponseHeaders }> | undefined {
  // Does not test `'headers' in result`: a polluted `Object.prototype` would make that true for
  // every result.
  return result?.kind === 'answer' || result?.kind === 'redirect' ? result : undefined
}

export function sendOver(transport: Transport, runtime: Runtime): Send {
  return async ({ method, url, headers, body, isLate, timeout, maxBytes, signal }) => {
    // The hooks have run since the call checked the time and the signal.
    if (timeout <= 0 || signal?.aborted === true || isLate?.() === true)
      return { kind: 'failed', unsent: 'late', closed: false, detail: bare({ name: 'Late' }) }
    const controller = new AbortController()
    let stopped: 'timeout' | 'aborted' | undefined
    let leave = (): void => {}
    const stop = (why: 'timeout' | 'aborted'): void => {
      if (stopped !== undefined) return
      stopped = why
      controller.abort()
      leave()
    }
    /** Waits, but no longer than until `stop`, even if the transport ignores its signal. */
    const settled = <T>(pending: Promise<T>, onStop: (resolve: (value: T) => void) => void): Promise<T> =>
      new Promise((resolve, reject) => {
        leave = () => onStop(resolve)
        pending.then(resolve, reject)
        // The caller may have aborted since the last wait.
        if (stopped !== undefined) leave()
      })
    const onAbort = (): void => stop(whyEnded(signal) === 'deadline' ? 'timeout' : 'aborted')
    signal?.addEventListener('abort', onAbort, { once: true })
    // Uses a timer instead of AbortSignal.any with AbortSignal.timeout, which never fires on some
    // runtimes (measured).
    const cancelTimer = runtime.setTimer(() => stop('timeout'), timeout)
    try {
      const { signal: own } = controller
      // A custom transport may return a thenable that sends again at each then().
      const pending = Promise.resolve(transport.send({ method, url, headers, body, isLate, signal: own }))
      const response = await settled<TransportResponse | undefined>(pending, (resolve) => resolve(undefined))
      if (response === undefined && stopped !== undefined) {
        pending.then(discard, () => {})
        return { kind: stopped }
      }
      // A custom transport may return anything. Such a response does not prove whether the service
      // processed the request.
      const isWhole = Number.isInteger(response?.status) && typeof response?.headers?.get === 'function'
      if (response === undefined || !isWhole) {
        discard(response)
        return failed(new TypeError('the transport returned no response'), undefined)
      }
      const { status, headers: received } = response
      if (status === 0 || (status >= 300 && status < 400)) {
        discard(response)
        return { kind: 'redirect', status, headers: received }
      }
      const most = status >= 200 && status < 300 ? maxBytes : MAX_ERROR_BYTES
      const reading = textOf(response, most)
      const { text, problem } = await settled(reading, (resolve) => {
        discard(response)
        // Limits the wait, because the transport's `read` may never end.
        const cancel = runtime.setTimer(() => resolve(CUT), DISCARD_WAIT)
        reading.finally(cancel)
      })
      return {
        kind: 'answer',
        status,
        headers: received,
        text,
        problem: problem === 'cut' ? (stopped ?? problem) : problem,
      }
    } catch (error) {
      return stopped === undefined ? failed(error, transport) : { kind: stopped }
    } finally {
      cancelTimer()
      signal?.removeEventListener('abort', onAbort)
    }
  }
}

/**
 * Reports any error, and any body of another form, as a lost connection: after a response, neither
 * proves that nothing was sent.
 */
async function textOf(response: TransportResponse, maxBytes: number): Promise<BodyText> {
  try {
    const { text, problem } = await response.read(maxBytes)
    return typeof text === 'string' && PROBLEMS.includes(problem) ? { text, problem } : CUT
  } catch {
    return CUT
  }
}

/** @param sender the transport that threw the error; without it, the error proves nothing */
function failed(error: unknown, sender: Transport | undefined): AttemptResult {
  let detail: FailureDetail = bare({ name: 'Error' })
  let unsent: false | Unsent = false
  let signpost: unknown
  try {
    detail = wordsOf(error)
    // A transport without `whyUnsent` is the caller's code: stack frames help to find its bugs.
    if (sender !== undefined && sender.whyUnsent === undefined && detail.code === undefined)
      detail = bare({ ...detail, ...defined({ frames: framesOf(error) }) })
    const why: unknown = sender?.whyUnsent?.(error)
    unsent = REASONS.find((reason) => reason === why) ?? false
    // Next.js throws such errors through its fetch, and recognises them by their digest.
    if (typeof ownValue(error, 'digest') === 'string') signpost = error
  } catch {
    // Reports the failure without details, because a getter of the thrown value may throw.
  }
  const { code } = detail
  const closed = code === 'ECONNRESET' || code === 'EPIPE' || code === 'UND_ERR_SOCKET'
  return { kind: 'failed', unsent, closed, detail, signpost }
}

/** Omits the message, and every frame whose address may contain a password or a query. */
function framesOf(error: unknown): string | undefined {
  const { stack, message } = isObject(error) ? error : {}
  if (typeof stack !== 'string' || typeof message !== 'string' || !stack.includes(message)) return undefined
  const lines = stack.slice(stack.indexOf(message) + message.length).split('\n')
  const places = lines.filter((line) => /^ +at .*:\d+:\d+\)?$/.test(line) && !/\?|\/\/[^/]*@/.test(line))
  return places.length === 0 ? undefined : places.join('\n')
}

function discard(response: TransportResponse | undefined): void {
  try {
    takeRejection(response?.discard(), () => {})
  } catch {
    // A custom transport may throw here, but the result of the attempt is already known.
  }
}

let decoder: TextDecoder | undefined

/**
 * Decodes all chunks together: in Node, decoding them one by one is several times slower, and the
 * resulting string takes twice the memory.
 */
export function bodyText(chunks: readonly Uint8Array[], problem?: BodyText['problem']): BodyText {
  const [first] = chunks
  const bytes = chunks.length > 1 ? joined(chunks) : first
  // An incomplete body may end within a character. A decoder in stream mode would add the bytes of
  // that character to the next body, so it is not reused.
  decoder ??= new TextDecoder()
  const text =
    problem === undefined ? decoder.decode(bytes) : new TextDecoder().decode(bytes, { stream: true })
  return { text, problem }
}

function joined(chunks: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(chunks.reduce((sum, { byteLength }) => sum + byteLength, 0))
  let position = 0
  for (const chunk of chunks) {
    bytes.set(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength), position)
    position += chunk.byteLength
  }
  return bytes
}
