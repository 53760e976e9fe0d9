import ky, { type Options } from 'ky'
import { bare, isObject } from '../defined.ts'
import { polluted } from '../schemas/check.ts'
import { bodyText } from './attempt.ts'
import { isNodeFetch, isUndecodable, provenUnsent } from './node.ts'
import type { BodyText, Transport, TransportResponse } from './transport.ts'

/** Few options: ky copies all of them once for each one (measured). */
const ONE_ATTEMPT = { retry: 0, timeout: false, throwHttpErrors: false } satisfies Options

/** Failures of the caller's own fetch (`given`) never prove that nothing was sent. */
export function kyTransport(given?: typeof fetch): Transport {
  // Detects a later patch of fetch, also one that is gone when its error arrives. The client uses a
  // patched fetch, but its failures do not prove that nothing was sent.
  const platform = globalThis.fetch
  let wasPatched = false
  // On a platform without the option `cache`, setting it throws (workerd before 2024-11-11) or
  // makes fetch polyfills change the URL. Called only when a request is sent, because reading
  // `Request` makes Node load its whole fetch.
  const supportsCache = () => {
    const { Request } = globalThis
    return Request?.prototype !== undefined && 'cache' in Request.prototype
  }

  const send: Transport['send'] = async (request) => {
    const { method, url, headers, body = null, signal } = request
    const reads = method === 'GET' || method === 'HEAD'
    let thrown: { readonly error: unknown } | undefined
    const sendOnce = async (): Promise<Response> => {
      try {
        // Does not pass the Request that ky made: fetch would unpack that Request again and stream
        // its body.
        const init: RequestInit = bare({ method, headers, body, redirect: 'manual', signal })
        // Bypasses HTTP caches: a cached list of orders proves nothing, and a cached balance may belong
        // to another API key.
        if (reads && supportsCache()) init.cache = 'no-store'
        wasPatched ||= globalThis.fetch !== platform
        return await (given ?? globalThis.fetch)(url, init)
      } catch (error) {
        // Stores the original error, because ky wraps errors on some runtimes.
        thrown = { error }
        throw error
      }
    }
    // ky does not get the method, the headers and the body, which are in `init`: it would copy them.
    const options: Options = { ...ONE_ATTEMPT, fetch: sendOnce }
    // ky would read more options from a polluted `Object.prototype`.
    const sent: Promise<Response> = polluted() ? sendOnce() : ky(url, options)
    let response: Response
    try {
      response = await sent
    } catch {
      throw thrown === undefined ? noResponse() : thrown.error
    }
    return fetched(response)
  }
  if (given !== undefined) return bare({ send })
  return {
    send,
    whyUnsent: (error) => !wasPatched && isNodeFetch(platform) && provenUnsent(error, false),
    sendsOnce: () => {
      if (wasPatched || behindServiceWorker()) return false
      return isNative(platform) || isNodeFetch(platform)
    },
  }
}

/** True for a fetch that the platform implements outside JavaScript. A bound function has no name. */
function isNative(candidate: typeof fetch): boolean {
  return /^function fetch\(\)\s*\{\s*\[native code\]\s*\}$/.test(Function.prototype.toString.call(candidate))
}

/**
 * True if a service worker may respond to the requests of this page or web worker, which it may send
 * more than once.
 */
function behindServiceWorker(): boolean {
  const { WorkerGlobalScope, ServiceWorkerGlobalScope, navigator }: Readonly<Record<string, unknown>> =
    globalThis
  const workers = isObject(navigator) ? navigator['serviceWorker'] : undefined
  if (isObject(workers) && 'controller' in workers) return workers['controller'] !== null
  // Most browsers do not tell a web worker whether a service worker controls it.
  const inside = (scope: unknown) => typeof scope === 'function' && globalThis instanceof scope
  return inside(WorkerGlobalScope) && !inside(ServiceWorkerGlobalScope)
}

/** The stack is empty, because it would point to this file instead of the caller's fetch. */
function noResponse(): TypeError {
  return Object.assign(new TypeError('fetch returned no Response'), { stack: '' })
}

function fetched(response: Response): TransportResponse {
  const { status, headers, type } = response
  const hidden = type === 'opaqueredirect'
  // The caller's fetch may return anything, such as `Response.error()`, which has status 0.
  if (typeof headers?.forEach !== 'function' || !(hidden || status > 0)) throw noResponse()
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  let discarded = false
  /** Also ends the current read, even if fetch ignores the abort signal. */
  const discard = (): void => {
    discarded = true
    const body = reader ?? response.body
    body?.cancel().catch(() => {})
  }
  /** Counts the decompressed bytes, so that a decompression bomb cannot exhaust the memory. */
  const read = async (maxBytes: number): Promise<BodyText> => {
    const chunks: Uint8Array[] = []
    try {
      reader = response.body?.getReader?.()
      if (reader === undefined) {
        // A custom fetch may return a body without a stream, which arrives completely or not at all.
        const text = await response.text()
        return text.length > maxBytes ? bodyText([], 'too_large') : { text, problem: undefined }
      }
      for (let bytes = 0; ; ) {
        const { done, value } = await reader.read()
        if (discarded) break
        if (done) return bodyText(chunks)
        if (!ArrayBuffer.isView(value)) break
        bytes += value.byteLength
        if (bytes > maxBytes) {
          discard()
          return bodyText(chunks, 'too_large')
        }
        chunks.push(value)
      }
    } catch (error) {
      // Any error except a failed decompression means that the connection broke.
      if (isUndecodable(error)) return bodyText([], 'undecodable')
    }
    return bodyText(chunks, 'cut')
  }
  return { status: hidden ? 0 : status, headers, read, discard }
}
