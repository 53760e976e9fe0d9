/**
 * What only Node can prove: whether its own fetch sends the requests, and what an error of its
 * sockets means. Builds for browsers have without-node.ts in place of this file.
 */
import { bare, defined, isObject } from '../defined.ts'
import type { Unsent } from './transport.ts'

/** What the client remembers of an error. Never its message, which may contain a secret. */
export interface FailureDetail {
  readonly name: string
  readonly code?: string
  readonly syscall?: string
  /** Stack frames, which help to find a bug in the caller's own fetch. */
  readonly frames?: string
}

/** An error or one of its causes. */
type Link = Readonly<Record<string, unknown>>

/**
 * System calls that happen before a connection exists. The error's code alone proves nothing: if
 * the route is lost on an established connection, Linux reports `EHOSTUNREACH` or `ENETUNREACH` for
 * the system call `read`, and by then the order may exist (measured, test/server/unsent.test.ts).
 */
const BEFORE_CONNECTION = /^(connect|getaddrinfo|query[A-Z]\w*)$/

/**
 * zlib's codes for a body whose format differs from its `Content-Encoding`. The code for a body
 * that ends early is not included, because such a body is reported as cut off.
 */
const UNDECODABLE = /^(Z_DATA_ERROR$|ERR_+(BROTLI|ERROR_FORMAT))/

const CERTIFICATE =
  /^(CERT_|ERR_TLS_CERT_ALTNAME_INVALID$|DEPTH_ZERO_SELF_SIGNED_CERT$|SELF_SIGNED_CERT_IN_CHAIN$|UNABLE_TO_VERIFY_|UNABLE_TO_GET_ISSUER_CERT)/

/**
 * OpenSSL's codes for a port without TLS. An established connection may report these codes as well
 * (measured, test/server/unsent.test.ts), so they prove that nothing was sent only if
 * `connecting` is true.
 */
const NOT_TLS = /^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)$/

/**
 * Returns why an error of Node's sockets proves that nothing was sent, or false if it does not. The
 * error codes are proof only for a transport that sends each request once, over its own
 * connections. Throws if a getter of `error` throws.
 * @param connecting true if the transport knows that the error occurred while connecting
 */
export function provenUnsent(error: unknown, connecting: boolean): false | Unsent {
  const link = outermostWithCode(error)
  const { code } = linkWords(link)
  if (code === undefined) return false
  const errors = fieldOf(link, 'errors')
  // Node tries every address of a host. Unless every attempt failed to connect, the request may
  // have been sent.
  const tries = Array.isArray(errors) ? errors : [link]
  if (tries.length > 0 && tries.every((each) => isObject(each) && neverConnected(each))) return 'unreachable'
  if (connecting && NOT_TLS.test(code)) return 'unreachable'
  return CERTIFICATE.test(code) && 'certificate'
}

/** Our code for a port that the Fetch standard blocks: Node's fetch reports no code for it. */
const BAD_PORT = 'BAD_PORT'

function neverConnected(link: Link): boolean {
  const { code, syscall } = linkWords(link)
  return (
    code === 'UND_ERR_CONNECT_TIMEOUT' ||
    code === BAD_PORT ||
    (syscall !== undefined && BEFORE_CONNECTION.test(syscall))
  )
}

export function isUndecodable(error: unknown): boolean {
  return UNDECODABLE.test(wordsOf(error).code ?? '')
}

/** Reads the outermost error with a code. Throws if a getter of `error` throws. */
export function wordsOf(error: unknown): FailureDetail {
  return linkWords(outermostWithCode(error))
}

function outermostWithCode(error: unknown): Link {
  const links: Link[] = []
  // Stops after ten errors, because causes may form a cycle.
  for (let link = error; isObject(link) && links.length < 10; link = fieldOf(link, 'cause')) {
    if (linkWords(link).code !== undefined) return link
    links.push(link)
  }
  return links[0] ?? {}
}

function linkWords(link: Link): FailureDetail {
  const code = fieldOf(link, 'code') ?? (fieldOf(link, 'message') === 'bad port' ? BAD_PORT : undefined)
  return bare({
    name: word(fieldOf(link, 'name'), /^[A-Za-z]{1,64}$/) ?? 'Error',
    ...defined({
      code: word(code, /^[A-Z]\w{1,63}$/),
      syscall: word(fieldOf(link, 'syscall'), /^[A-Za-z_]{1,32}$/),
    }),
  })
}

/** Any string that is not shaped like a name or a code may contain a secret. */
function word(value: unknown, shape: RegExp): string | undefined {
  return typeof value === 'string' && shape.test(value) ? value : undefined
}

/**
 * Ignores fields of `Object.prototype`, where a polluted `code` could falsely prove that nothing
 * was sent.
 */
function fieldOf(link: Link, name: string): unknown {
  return Object.hasOwn(link, name) || !(name in Object.prototype) ? link[name] : undefined
}

/**
 * True for Node's own, unwrapped fetch with the dispatcher that Node itself made: only its errors can
 * prove that nothing was sent. Anything else (a mock, an instrumented fetch, an application's own
 * dispatcher) may report the same error after it has sent the request.
 */
export function isNodeFetch(candidate: typeof fetch): boolean {
  const scope: Readonly<Record<PropertyKey, unknown>> = globalThis
  const { Bun, Deno } = scope
  if (Bun !== undefined || Deno !== undefined) return false
  // Only the source of Node's own fetch contains this require call. A bound function or a proxy
  // hides its source and fails this test.
  if (!/require\('internal\/deps\/undici\/undici'\)/.test(sourceOf(candidate))) return false
  const [first, second] = [1, 2].map(
    (generation) => scope[Symbol.for(`undici.globalDispatcher.${generation}`)],
  )
  // Since undici 8 (Node 26), the first symbol holds a wrapper around the second symbol's
  // dispatcher.
  const wrapped = second !== undefined && isMadeByNode(first, ['Dispatcher1Wrapper'], undefined)
  return [second, wrapped ? undefined : first].every(
    (dispatcher) => dispatcher === undefined || isPlainAgent(dispatcher),
  )
}

/** With its first request, an agent of undici 6 keeps what its interceptors have composed. */
const COMPOSED = 'Intercepted Dispatch'

/** True for an Agent of Node without interceptors on the agent or on its connections. */
function isPlainAgent(agent: unknown): boolean {
  if (!isMadeByNode(agent, ['Agent', 'DispatcherBase'], { factory: 0 })) return false
  const named = (name: string): unknown => {
    const symbol = Object.getOwnPropertySymbols(agent).find(({ description }) => description === name)
    return symbol && agent[symbol]
  }
  const options = named('options')
  // undici 6 (Node 22) composes interceptors inside the agent. Its own one follows redirects, which
  // the client switches off.
  const interceptors = named('dispatch interceptors') ?? []
  return (
    isObject(options) &&
    Object.values(options).every((value) => value === undefined || value === Number.POSITIVE_INFINITY) &&
    /new Pool\(origin, opts\)/.test(sourceOf(named('factory'))) &&
    Array.isArray(interceptors) &&
    interceptors.every(
      (interceptor) =>
        /maxRedirections/.test(sourceOf(interceptor)) &&
        sourceOf(interceptor).includes(sourceOf(named(COMPOSED))),
    )
  )
}

/**
 * True for an object of one of Node's own classes, if neither the object nor its classes are
 * patched.
 * @param classes names of its class and of that class's ancestors
 * @param wrong an argument that the constructor rejects
 */
function isMadeByNode(
  object: unknown,
  classes: readonly string[],
  wrong: unknown,
): object is Readonly<Record<PropertyKey, unknown>> {
  if (!isObject(object)) return false
  const { constructor: made } = object
  let prototype: unknown = object
  for (const name of classes) {
    prototype = Object.getPrototypeOf(prototype)
    if (!isObject(prototype) || prototype.constructor?.name !== name) return false
    // The source of a class contains its methods, so a method from elsewhere is a patch.
    const source = sourceOf(prototype.constructor)
    for (const key of Reflect.ownKeys(prototype)) {
      if (!/dispatch/i.test(String(key))) continue
      const method = Object.getOwnPropertyDescriptor(prototype, key)?.value
      // A proxy may return another function than the class has.
      const isOwn = Object.hasOwn(object, key) || Reflect.get(object, key) !== method
      if (isOwn && !(typeof key === 'symbol' && key.description === COMPOSED)) return false
      if (!source.includes(sourceOf(method))) return false
    }
  }
  return isCodeOfNode(made, wrong)
}

/** A copy of undici has the same sources and names. Only a stack trace shows where code comes from. */
function isCodeOfNode(made: unknown, wrong: unknown): boolean {
  try {
    if (typeof made === 'function') Reflect.construct(made, [wrong])
  } catch (error) {
    const [, frame] = isObject(error) ? String(error['stack']).split('\n') : []
    return frame !== undefined && /^ +at new \w+ \(node.internal\/deps\/undici\//.test(frame)
  }
  return false
}

function sourceOf(value: unknown): string {
  return typeof value === 'function' ? Function.prototype.toString.call(value) : ''
}
