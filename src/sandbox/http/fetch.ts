import type { SandboxMessage, SandboxReply } from '../service/reply.ts'

/** A drop-in replacement for the global `fetch`, which rejects instead of following a redirect. */
export type SandboxFetch = (input: Request | URL | string, init?: RequestInit) => Promise<Response>

/**
 * Mimics the network errors of Node's fetch.
 *
 * The client reads `cause` to decide whether the request was sent.
 */
function networkError(code: string, syscall: string): TypeError {
  return new TypeError('fetch failed', {
    cause: Object.assign(new Error(`${syscall} ${code}`), { code, syscall }),
  })
}

/** Mimics the cause that Node's fetch gives for a body that ends early. */
function otherSideClosed(): Error {
  return Object.assign(new Error('other side closed'), { code: 'UND_ERR_SOCKET' })
}

export function createFetch(
  handle: (message: SandboxMessage) => Promise<SandboxReply>,
  baseUrl: URL,
): SandboxFetch {
  return async (input, init) => {
    const request = requestOf(input, init)
    const { signal, redirect, url } = request
    if (new URL(url).origin !== baseUrl.origin) throw networkError('ENOTFOUND', 'getaddrinfo')
    const reply = await untilAborted(handle(await messageOf(request)), signal)
    const response = await respond(reply, signal, url)
    if (redirect !== 'manual' && [301, 302, 303, 307, 308].includes(response.status))
      throw new TypeError('fetch failed', { cause: new Error('unexpected redirect') })
    return response
  }
}

export async function messageOf(request: Request): Promise<SandboxMessage> {
  const headers: Record<string, string> = {}
  for (const [name, value] of request.headers) headers[name] = value
  const { method, url, signal } = request
  return { method, url, headers, body: await untilAborted(request.text(), signal), signal }
}

export async function respond(reply: SandboxReply, signal: AbortSignal, url: string): Promise<Response> {
  const { delivery } = reply
  if (delivery.type === 'refuse') throw networkError('ECONNREFUSED', 'connect')
  if (delivery.type === 'drop') throw networkError('ECONNRESET', 'read')
  if (delivery.type === 'stall') return untilAborted(new Promise<never>(() => {}), signal)
  // The Response constructor rejects a body with these statuses.
  const empty = reply.status === 204 || reply.status === 205 || reply.status === 304
  const headers = new Headers(reply.headers)
  // Send the content-length of the whole body, so that the client notices the missing part.
  if (delivery.type === 'stallBody' || (delivery.type === 'cut' && !delivery.cleanly))
    headers.set('content-length', String(new TextEncoder().encode(reply.body).length))
  const response = new Response(empty ? null : bodyOf(reply, signal), { status: reply.status, headers })
  // A real fetch sets the URL, but the Response constructor cannot. The property is configurable,
  // because msw before 2.7 redefines it.
  Object.defineProperty(response, 'url', { value: url, configurable: true })
  return response
}

function requestOf(input: Request | URL | string, init: RequestInit | undefined): Request {
  if (typeof input === 'string' || input instanceof URL) {
    // Reject a relative URL: a browser would resolve it against the page's address, not against the
    // sandbox's.
    if (!URL.canParse(String(input))) throw new TypeError(`Failed to parse URL from ${String(input)}`)
    return new Request(input, init)
  }
  return init === undefined ? input : new Request(input, init)
}

function bodyOf(reply: SandboxReply, signal: AbortSignal): string | ReadableStream<Uint8Array> {
  const { delivery, body } = reply
  switch (delivery.type) {
    case 'cut':
      return partOf(body, delivery.after, (controller) => {
        if (delivery.cleanly) controller.close()
        else controller.error(new TypeError('terminated', { cause: otherSideClosed() }))
      })
    case 'stallBody':
      return partOf(body, delivery.after, (controller) => {
        if (signal.aborted) controller.error(signal.reason)
        else signal.addEventListener('abort', () => controller.error(signal.reason), { once: true })
      })
    default:
      return body
  }
}

/**
 * Streams the first bytes of a body.
 *
 * Calls `end` only after these bytes were read, because an error discards all bytes in the stream's
 * queue.
 */
function partOf(
  body: string,
  after: number,
  end: (controller: ReadableStreamDefaultController<Uint8Array>) => void,
): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(body).slice(0, after)
  let sent = bytes.length === 0
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (sent) return end(controller)
        sent = true
        controller.enqueue(bytes)
      },
    },
    { highWaterMark: 0 },
  )
}

/** Rejects when the signal fires. The work continues, as it would on a real server. */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      // Without this line, a failure of the work would be an unhandled rejection.
      work.catch(() => {})
      return reject(signal.reason)
    }
    const abort = (): void => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    const done = (): void => signal.removeEventListener('abort', abort)
    work.then(
      (value) => {
        done()
        resolve(value)
      },
      (error: unknown) => {
        done()
        reject(error)
      },
    )
  })
}
