import ky from 'ky'
import type { Runtime } from '../runtime.ts'

/** One HTTP request, complete: nothing is added or changed on the way. */
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
}

/** Most bytes of an error's body that are read, after decompression. */
export const MAX_ERROR_BYTES: number = 256 * 1024

/** Why a body is not there as a whole. */
export type BodyProblem = 'cut' | 'timeout' | 'aborted' | 'too_large'

/** What is known of a failure before an answer: names and codes only, never a text that may hold a secret. */
export interface FailureDetail {
  readonly name: string
  readonly code?: string
  readonly syscall?: string
}

/** How one attempt ended. `unsent` is claimed only where the platform proves that no byte of the request left. */
export type AttemptResult =
  | {
      readonly kind: 'answer'
      readonly status: number
      readonly headers: Headers
      /** What was read of the body, decoded; complete unless `problem` says otherwise. */
      readonly text: string
      readonly problem?: BodyProblem
    }
  | { readonly kind: 'redirect'; readonly status: number; readonly headers: Headers }
  | {
      readonly kind: 'failed'
      readonly unsent: false | 'unreachable' | 'certificate'
      readonly closed: boolean
      readonly detail: FailureDetail
    }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'aborted' }

/** Performs one attempt and says how it ended; never throws. */
export type Transport = (request: AttemptRequest) => Promise<AttemptResult>

/** Transports for tests, other platforms and the default all look like this. */
export interface TransportOptions {
  /** Sends requests in place of the platform's fetch. */
  readonly fetch?: typeof fetch | undefined
  readonly runtime: Runtime
}

/** A transport over ky, which performs exactly one attempt: no retries, no redirects, no hooks, no thrown statuses. */
export function createTransport({ fetch: given, runtime }: TransportOptions): Transport {
  // Looked up once: a fetch that is patched later is still used, but then nothing is believed to be unsent.
  const platform = given === undefined ? globalThis.fetch : undefined

  return async (request) => {
    const controller = new AbortController()
    let stopped: 'timeout' | 'aborted' | undefined
    let interrupt: () => void = () => {}
    // A fetch that ignores its signal must not keep the caller waiting, so every await races this promise.
    const interrupted = new Promise<'interrupted'>((resolve) => {
      interrupt = () => resolve('interrupted')
    })
    const stop = (why: 'timeout' | 'aborted'): void => {
      if (stopped !== undefined) return
      stopped = why
      controller.abort()
      interrupt()
    }
    const onAbort = (): void => stop('aborted')
    if (request.signal?.aborted === true) return { kind: 'aborted' }
    request.signal?.addEventListener('abort', onAbort, { once: true })
    // A plain timer: AbortSignal.any with AbortSignal.timeout was measured never to fire on some runtimes.
    const cancelTimer = runtime.setTimer(() => stop('timeout'), request.timeout)
    let thrown: unknown
    try {
      const pending = ky(request.url, {
        method: request.method,
        headers: request.headers,
        ...(request.body === undefined ? {} : { body: request.body }),
        retry: 0,
        timeout: false,
        throwHttpErrors: false,
        redirect: 'manual',
        fetch: async (input, init) => {
          try {
            return await (given ?? globalThis.fetch)(input, { ...init, signal: controller.signal })
          } catch (error) {
            // Kept here because ky wraps some errors and not others, differently by runtime.
            thrown = error
            throw error
          }
        },
      })
      const response = await Promise.race([pending, interrupted])
      if (response === 'interrupted') {
        pending.then(discard, () => {})
        return { kind: stopped ?? 'aborted' }
      }
      if (response.type === 'opaqueredirect' || (response.status >= 300 && response.status < 400)) {
        discard(response)
        return { kind: 'redirect', status: response.status, headers: response.headers }
      }
      const { text, problem } = await readBody(
        response,
        response.ok ? request.maxBytes : MAX_ERROR_BYTES,
        interrupted,
      )
      const found = problem === 'cut' ? (stopped ?? problem) : problem
      return {
        kind: 'answer',
        status: response.status,
        headers: response.headers,
        text,
        ...(found === undefined ? {} : { problem: found }),
      }
    } catch (error) {
      if (stopped !== undefined) return { kind: stopped }
      return failure(
        thrown ?? error,
        platform !== undefined && globalThis.fetch === platform && isNodeFetch(platform),
      )
    } finally {
      cancelTimer()
      request.signal?.removeEventListener('abort', onAbort)
    }
  }
}

/** Lets go of an answer that nobody reads. Its connection may die of it, which concerns nobody either. */
function discard(response: Response): void {
  response.body?.cancel().catch(() => {})
}

interface BodyText {
  readonly text: string
  readonly problem?: BodyProblem
}

/** Reads a body as text, at most `maxBytes` of it: the cap counts decoded bytes, so a compressed bomb costs no more. */
async function readBody(
  response: Response,
  maxBytes: number,
  interrupted: Promise<'interrupted'>,
): Promise<BodyText> {
  if (response.body === null) return { text: '' }
  const length = Number(response.headers.get('content-length') ?? Number.NaN)
  if (length <= maxBytes && !response.headers.has('content-encoding')) {
    // The length is enforced by HTTP itself, so the faster way is as safe.
    const pending = response.text()
    const text = await Promise.race([pending, interrupted]).catch(() => undefined)
    if (text === undefined) return { text: '', problem: 'cut' }
    if (text !== 'interrupted') return { text }
    pending.catch(() => {})
    return { text: '', problem: 'cut' }
  }
  const reader = response.body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for (;;) {
    const chunk = await Promise.race([reader.read(), interrupted]).catch(() => undefined)
    if (chunk === undefined || chunk === 'interrupted') {
      reader.cancel().catch(() => {})
      return { text, problem: 'cut' }
    }
    if (chunk.done) return { text: text + decoder.decode() }
    bytes += chunk.value.byteLength
    if (bytes > maxBytes) {
      reader.cancel().catch(() => {})
      return { text, problem: 'too_large' }
    }
    text += decoder.decode(chunk.value, { stream: true })
  }
}

const UNREACHABLE = new Set([
  'ENOTFOUND',
  'EAI_AGAIN',
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

const CERTIFICATE =
  /^(CERT_|ERR_TLS_CERT_ALTNAME_INVALID$|DEPTH_ZERO_SELF_SIGNED_CERT$|SELF_SIGNED_CERT_IN_CHAIN$|UNABLE_TO_VERIFY_|UNABLE_TO_GET_ISSUER_CERT)/

/** Names a thrown value by the codes in its chain of causes. */
function failure(error: unknown, provesUnsent: boolean): AttemptResult {
  const links = chain(error)
  const found = links.find((link) => link.code !== undefined) ?? links[0] ?? { name: 'Error' }
  const { code, syscall } = found
  let unsent: false | 'unreachable' | 'certificate' = false
  if (provesUnsent && code !== undefined) {
    // A reset says ECONNRESET both while connecting and after the request went out: only the system call tells.
    if (UNREACHABLE.has(code) || syscall === 'connect') unsent = 'unreachable'
    else if (CERTIFICATE.test(code)) unsent = 'certificate'
  }
  if (unsent === 'unreachable' && !everyAddressFailed(error)) unsent = false
  const closed = code === 'ECONNRESET' || code === 'EPIPE' || code === 'UND_ERR_SOCKET'
  return { kind: 'failed', unsent, closed, detail: found }
}

/** The error and its causes, outermost first, as names and codes; at most ten, because causes may form a ring. */
function chain(error: unknown): FailureDetail[] {
  const links: FailureDetail[] = []
  for (let link = error; isObject(link) && links.length < 10; link = link['cause']) {
    const { name, code, syscall } = link
    links.push({
      name: typeof name === 'string' ? name : 'Error',
      ...(typeof code === 'string' && /^[\w-]{1,64}$/.test(code) ? { code } : {}),
      ...(typeof syscall === 'string' && /^\w{1,32}$/.test(syscall) ? { syscall } : {}),
    })
  }
  return links
}

/** Node tries several addresses of a host; unless every one of them failed to connect, something may have been sent. */
function everyAddressFailed(error: unknown): boolean {
  for (let link = error, depth = 0; isObject(link) && depth < 10; link = link['cause'], depth++) {
    const errors = link['errors']
    if (!Array.isArray(errors)) continue
    return errors.every((each: unknown) => {
      const detail = chain(each)[0]
      return detail?.syscall === 'connect' || (detail?.code !== undefined && UNREACHABLE.has(detail.code))
    })
  }
  return true
}

/**
 * True if this is the fetch that Node came with, unwrapped and with its own dispatcher. Anything else (a mock, an
 * instrumented fetch, a dispatcher that retries) may have sent the request once before the failure it shows.
 */
function isNodeFetch(candidate: typeof fetch): boolean {
  const { process, Bun, Deno } = globalThis as {
    process?: { versions?: { node?: string } }
    Bun?: unknown
    Deno?: unknown
  }
  if (typeof process?.versions?.node !== 'string' || Bun !== undefined || Deno !== undefined) return false
  if (!/\blazyUndici\b|\bundici\b|\[native code\]/i.test(Function.prototype.toString.call(candidate)))
    return false
  return [1, 2].every((generation) => {
    const dispatcher = (globalThis as Record<symbol, unknown>)[
      Symbol.for(`undici.globalDispatcher.${generation}`)
    ]
    if (!isObject(dispatcher)) return true
    // A composed dispatcher is a proxy that answers `dispatch` itself, so it differs from its prototype's.
    const prototype: unknown = Object.getPrototypeOf(dispatcher)
    const isAgent = isObject(prototype) && dispatcher.constructor?.name === 'Agent'
    return isAgent && dispatcher['dispatch'] === prototype['dispatch']
  })
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
