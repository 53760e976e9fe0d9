import ky, { type Options } from 'ky'
import { bare, defined } from '../defined.ts'
import type { Runtime } from '../runtime.ts'
import { polluted } from '../schemas/check.ts'
import {
  type AnswerHeaders,
  type BodyProblem,
  type BodyText,
  bodyText,
  type HeldBack,
  headersOf,
  IS_LATE,
  isOwnFetch,
  ownBody,
  provesUnsent,
  whyHeldBack,
} from './own-fetch.ts'

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
  /** True once it must not be sent any more; heeded by this package's own fetches, at the last moment. */
  readonly isLate?: (() => boolean) | undefined
}

/** Most bytes of an error's body that are read, after decompression. */
export const MAX_ERROR_BYTES: number = 256 * 1024

/** What is known of a failure before an answer: names and codes only, never a text that may hold a secret. */
export interface FailureDetail {
  readonly name: string
  readonly code?: string
  readonly syscall?: string
  /** Where a fetch of the caller's threw, in lines as `stack` has them: without it, a bug in there could not be found. */
  readonly frames?: string
}

/** Why no byte of a request left: no connection, a certificate that nobody trusts, or a transport that held it back. */
export type Unsent = 'unreachable' | 'certificate' | HeldBack

/** How one attempt ended. `unsent` is claimed only where the platform proves that no byte of the request left. */
export type AttemptResult =
  | {
      readonly kind: 'answer'
      readonly status: number
      readonly headers: AnswerHeaders
      /** What was read of the body, decoded; complete unless `problem` says otherwise. */
      readonly text: string
      readonly problem?: BodyProblem | undefined
    }
  | { readonly kind: 'redirect'; readonly status: number; readonly headers: AnswerHeaders }
  | {
      readonly kind: 'failed'
      readonly unsent: false | Unsent
      readonly closed: boolean
      readonly detail: FailureDetail
    }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'aborted' }

/** Performs one attempt and says how it ended; never throws. */
export type Transport = (request: AttemptRequest) => Promise<AttemptResult>

/** The result, if it has the status and headers of an answer. Not by `'headers' in`: every object may inherit one. */
export function answerOf(
  result: AttemptResult | undefined,
): Extract<AttemptResult, { readonly headers: AnswerHeaders }> | undefined {
  return result?.kind === 'answer' || result?.kind === 'redirect' ? result : undefined
}

/** Transports for tests, other platforms and the default all look like this. */
export interface TransportOptions {
  /** Sends requests in place of the platform's fetch. */
  readonly fetch?: typeof fetch | undefined
  readonly runtime: Runtime
}

/** An attempt under way. */
interface Attempt {
  /** Why it was ended early. */
  stopped: 'timeout' | 'aborted' | undefined
  /** Ends the wait for whatever it waits for: a fetch that ignores its signal must not keep the caller waiting. */
  leave: () => void
}

/** Keeps an HTTP cache out of reads: a cached list of orders proves nothing, and a cached balance may be another key's. */
const NO_STORE = { cache: 'no-store' } as const

/** What ky is told, besides where to and how to send. */
const ONE_ATTEMPT = {
  headers: {},
  retry: 0,
  timeout: false,
  totalTimeout: false,
  throwHttpErrors: false,
} satisfies Options

/**
 * Everything else that ky reads or hands to `Request`, for where they would find it in a polluted `Object.prototype`. Only
 * there, because ky copies its options once for each of them: 17 kB a call (measured). It drops `searchParams` that are
 * undefined, and Node takes what is undefined in the last four from the prototype.
 */
const NOTHING_ELSE = {
  prefix: '',
  baseUrl: '',
  context: {},
  searchParams: '',
  body: null,
  window: null,
  referrer: 'about:client',
  signal: null,
} satisfies Options
const NOT_GIVEN = [
  ...['json', 'onDownloadProgress', 'onUploadProgress', 'mode', 'credentials', 'cache', 'redirect'],
  ...['referrerPolicy', 'integrity', 'keepalive', 'dispatcher'],
]

function nothingElse(): Options {
  // Own properties without a value, which the types of ky call absent.
  const notGiven: Readonly<Record<string, never>> = Object.fromEntries(NOT_GIVEN.map((name) => [name]))
  return { ...notGiven, ...NOTHING_ELSE }
}

/** A transport over ky, which performs exactly one attempt: no retries, no redirects, no hooks, no thrown statuses. */
export function createTransport({ fetch: given, runtime }: TransportOptions): Transport {
  // Looked up once: a fetch that is patched later is still used, but then nothing is believed to be unsent.
  const platform = given === undefined ? globalThis.fetch : undefined

  const own = given !== undefined && isOwnFetch(given)
  // Asked of the prototype: where the option is missing, some platforms throw on it (workerd before 2024-11-11), and
  // fetch polyfills change the URL. Asked by each request: a look at `Request` makes Node load its whole fetch.
  const uncached = () => {
    const { Request } = globalThis
    return Request?.prototype !== undefined && 'cache' in Request.prototype && NO_STORE
  }

  return async (request) => {
    if (request.signal?.aborted === true) return { kind: 'aborted' }
    const controller = new AbortController()
    const attempt: Attempt = { stopped: undefined, leave: () => {} }
    const stop = (why: 'timeout' | 'aborted'): void => {
      if (attempt.stopped !== undefined) return
      attempt.stopped = why
      controller.abort()
      attempt.leave()
    }
    const onAbort = (): void => stop('aborted')
    request.signal?.addEventListener('abort', onAbort, { once: true })
    // A plain timer: AbortSignal.any with AbortSignal.timeout was measured never to fire on some runtimes.
    const cancelTimer = runtime.setTimer(() => stop('timeout'), request.timeout)
    let thrown: unknown
    try {
      const send = async (): Promise<Response> => {
        try {
          // Not ky's Request: fetch would only take it apart again, its body as a stream.
          return await (given ?? globalThis.fetch)(
            request.url,
            // Without a prototype, so that the platform takes nothing from a polluted one.
            bare({
              method: request.method,
              headers: request.headers,
              body: request.body ?? null,
              redirect: 'manual' as const,
              signal: controller.signal,
              ...((request.method === 'GET' || request.method === 'HEAD') && uncached()),
              ...(own && request.isLate !== undefined && { [IS_LATE]: request.isLate }),
            }),
          )
        } catch (error) {
          // Kept here because ky wraps some errors and not others, differently by runtime.
          thrown = error
          throw error
        }
      }
      // Our own fetch is one attempt by itself, and what it answers needs no check.
      const pending = own
        ? send()
        : // Not the headers and the body: ky would only make a Request of them, and what is sent has them already.
          ky(request.url, {
            ...(polluted() && nothingElse()),
            ...ONE_ATTEMPT,
            method: request.method,
            fetch: send,
          })
      const response = await new Promise<Response | 'interrupted'>((resolve, reject) => {
        attempt.leave = () => resolve('interrupted')
        pending.then(resolve, reject)
      })
      if (response === 'interrupted') {
        pending.then(discard, () => {})
        return { kind: attempt.stopped ?? 'aborted' }
      }
      const { status } = response
      const headers = headersOf(response)
      // What a caller's fetch returns may be anything; status 0 is the Fetch standard's network error.
      if (typeof headers.forEach !== 'function') throw new TypeError()
      if (response.type === 'opaqueredirect' || (status >= 300 && status < 400)) {
        void discard(response)
        return { kind: 'redirect', status, headers }
      }
      if (!(status > 0)) throw new TypeError()
      const { text, problem } = await readBody(
        response,
        response.ok ? request.maxBytes : MAX_ERROR_BYTES,
        attempt,
      )
      return {
        kind: 'answer',
        status,
        headers,
        text,
        problem: problem === 'cut' ? (attempt.stopped ?? problem) : problem,
      }
    } catch (error) {
      if (attempt.stopped !== undefined) return { kind: attempt.stopped }
      const ended = failure(
        thrown ?? error,
        given === undefined
          ? platform !== undefined && globalThis.fetch === platform && isNodeFetch(platform)
          : provesUnsent(given),
        given !== undefined && thrown !== undefined,
      )
      const held = given === undefined ? undefined : whyHeldBack(given, thrown)
      return held === undefined ? ended : { ...ended, unsent: held }
    } finally {
      cancelTimer()
      request.signal?.removeEventListener('abort', onAbort)
    }
  }
}

/** Lets go of an answer that nobody reads. Its connection may die of it, which concerns nobody either. */
async function discard(response: Response): Promise<void> {
  try {
    const own = ownBody(response)
    if (own === undefined) await response.body?.cancel()
    else own.discard()
  } catch {}
}

/**
 * Reads a body as text, at most `maxBytes` of it: the cap counts decoded bytes, so a compressed bomb costs no more, and
 * believes no header, because browsers hide the one that tells of compression. Never throws: the status is known by now.
 */
async function readBody(response: Response, maxBytes: number, attempt: Attempt): Promise<BodyText> {
  const own = ownBody(response)
  if (own !== undefined) return own.read(maxBytes)
  const chunks: Uint8Array[] = []
  try {
    const reader = response.body?.getReader?.()
    if (reader === undefined) return await readWhole(response, maxBytes, attempt)
    let over = false
    attempt.leave = () => {
      over = true
      // Ends a pending read at once, also that of a fetch which ignores its signal.
      reader.cancel().catch(() => {})
    }
    if (attempt.stopped !== undefined) attempt.leave()
    for (let bytes = 0; ; ) {
      const { done, value } = await reader.read()
      if (over) break
      if (done) return bodyText(chunks)
      if (!ArrayBuffer.isView(value)) break
      bytes += value.byteLength
      if (bytes > maxBytes) {
        attempt.leave()
        return bodyText(chunks, 'too_large')
      }
      chunks.push(value)
    }
  } catch {
    // The connection broke.
  }
  // Also where the body is none.
  return bodyText(chunks, 'cut')
}

/** Without a stream, as in React Native, the text comes as a whole or not at all. */
async function readWhole(response: Response, maxBytes: number, attempt: Attempt): Promise<BodyText> {
  const whole = await new Promise<string | undefined>((resolve, reject) => {
    attempt.leave = () => resolve(undefined)
    if (attempt.stopped !== undefined) attempt.leave()
    response.text().then(resolve, reject)
  })
  if (whole === undefined) return { text: '', problem: 'cut' }
  return whole.length > maxBytes ? { text: '', problem: 'too_large' } : { text: whole, problem: undefined }
}

/**
 * The system calls that come before a connection. A connection that was made may die of any code: after its peer committed
 * an order, Linux reports a lost route as `EHOSTUNREACH` or `ENETUNREACH` of `read` (measured, see test/server/unsent.test.ts).
 */
const BEFORE_CONNECTION = /^(connect|getaddrinfo|query[A-Z]\w*)$/

const CERTIFICATE =
  /^(CERT_|ERR_TLS_CERT_ALTNAME_INVALID$|DEPTH_ZERO_SELF_SIGNED_CERT$|SELF_SIGNED_CERT_IN_CHAIN$|UNABLE_TO_VERIFY_|UNABLE_TO_GET_ISSUER_CERT)/

/** Names a thrown value by the codes in its chain of causes. */
function failure(
  error: unknown,
  provesUnsent: boolean,
  callers: boolean,
): Extract<AttemptResult, { readonly kind: 'failed' }> {
  let found: FailureDetail = bare({ name: 'Error' })
  let neverConnected = false
  try {
    const links = chain(error)
    const telling = links.find((link) => detailOf(link).code !== undefined) ?? links[0]
    if (telling !== undefined) {
      found = detailOf(telling)
      neverConnected = saysNeverConnected(telling)
    }
    if (callers && found.code === undefined && isObject(error)) {
      found = bare({ ...found, ...defined({ frames: framesOf(error) }) })
    }
  } catch {
    // What a caller's fetch throws may throw again when it is looked at.
    neverConnected = false
  }
  const { code } = found
  let unsent: false | Unsent = false
  if (provesUnsent && code !== undefined) {
    if (neverConnected) unsent = 'unreachable'
    else if (CERTIFICATE.test(code)) unsent = 'certificate'
  }
  const closed = code === 'ECONNRESET' || code === 'EPIPE' || code === 'UND_ERR_SOCKET'
  return { kind: 'failed', unsent, closed, detail: found }
}

/** The places in a stack and nothing else of it: no message, and no address that may hold a password or a query. */
function framesOf({ stack, message }: Readonly<Record<string, unknown>>): string | undefined {
  if (typeof stack !== 'string' || typeof message !== 'string' || !stack.includes(message)) return undefined
  const lines = stack.slice(stack.indexOf(message) + message.length).split('\n')
  const places = lines.filter((line) => /^ +at .*:\d+:\d+\)?$/.test(line) && !/\?|\/\/[^/]*@/.test(line))
  return places.length === 0 ? undefined : places.join('\n')
}

/** Node tries several addresses of a host: unless every one of them failed to connect, something may have been sent. */
function saysNeverConnected(link: Readonly<Record<string, unknown>>): boolean {
  const errors = fieldOf(link, 'errors')
  if (Array.isArray(errors))
    return errors.length > 0 && errors.every((each) => isObject(each) && noConnection(each))
  return noConnection(link)
}

function noConnection(link: Readonly<Record<string, unknown>>): boolean {
  const { code, syscall } = detailOf(link)
  return code === 'UND_ERR_CONNECT_TIMEOUT' || (syscall !== undefined && BEFORE_CONNECTION.test(syscall))
}

/** The error and its causes, outermost first; at most ten, because causes may form a ring. */
function chain(error: unknown): Readonly<Record<string, unknown>>[] {
  const links: Readonly<Record<string, unknown>>[] = []
  for (let link = error; isObject(link) && links.length < 10; link = fieldOf(link, 'cause')) links.push(link)
  return links
}

/** The name and codes of one error. */
function detailOf(link: Readonly<Record<string, unknown>>): FailureDetail {
  const [name, code, syscall] = [fieldOf(link, 'name'), fieldOf(link, 'code'), fieldOf(link, 'syscall')]
  return bare({
    name: isWord(name, /^[A-Za-z]{1,64}$/) ? name : 'Error',
    ...(isWord(code, /^[A-Z]\w{1,63}$/) ? { code } : {}),
    ...(isWord(syscall, /^[A-Za-z_]{1,32}$/) ? { syscall } : {}),
  })
}

/** A field that the error or its class has, not every object: a polluted `code` would pass for the proof that nothing was sent. */
function fieldOf(link: Readonly<Record<string, unknown>>, name: string): unknown {
  return Object.hasOwn(link, name) || !(name in Object.prototype) ? link[name] : undefined
}

/** Names and codes have a shape that a secret, put there by a caller's fetch, has not. */
function isWord(value: unknown, shape: RegExp): value is string {
  return typeof value === 'string' && shape.test(value)
}

/**
 * True if this is the fetch that Node came with, unwrapped and with its own dispatcher. Anything else (a mock, an
 * instrumented fetch, a dispatcher that retries) may have sent the request once before the failure it shows.
 */
function isNodeFetch(candidate: typeof fetch): boolean {
  const { Bun, Deno } = globalThis as { Bun?: unknown; Deno?: unknown }
  if (Bun !== undefined || Deno !== undefined) return false
  // No other function can require this module, and none that is bound or a proxy shows its text.
  if (!/require\('internal\/deps\/undici\/undici'\)/.test(Function.prototype.toString.call(candidate)))
    return false
  const [first, second] = [1, 2].map(
    (generation) =>
      (globalThis as Record<symbol, unknown>)[Symbol.for(`undici.globalDispatcher.${generation}`)],
  )
  // From undici 8 on (Node 26), the first generation's place holds a wrapper of the second's dispatcher.
  const wrapper = second !== undefined && isObject(first) && first.constructor?.name === 'Dispatcher1Wrapper'
  return [second, wrapper ? undefined : first].every(
    (dispatcher) => dispatcher === undefined || isPlainAgent(dispatcher),
  )
}

/** True for an Agent of undici that dispatches by itself, to connections that do, too. */
function isPlainAgent(dispatcher: unknown): boolean {
  if (!isObject(dispatcher)) return false
  // A composed dispatcher is a proxy that answers `dispatch` itself, so it differs from its prototype's.
  const prototype: unknown = Object.getPrototypeOf(dispatcher)
  const factory = Object.getOwnPropertySymbols(dispatcher).find(
    ({ description }) => description === 'factory',
  )
  return (
    isObject(prototype) &&
    dispatcher.constructor?.name === 'Agent' &&
    dispatcher['dispatch'] === prototype['dispatch'] &&
    factory !== undefined &&
    (dispatcher as Record<symbol, { readonly name?: string }>)[factory]?.name === 'defaultFactory'
  )
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
