/** What an error of Node's sockets proves. Not part of builds for browsers. */
import { bare, defined, isObject } from '../defined.ts'
import { type FailureDetail, framesOf, isWord, nameOf } from './failure-detail.ts'
import type { Unsent } from './transport.ts'

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
  const { code } = wordsOf(link)
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
  const { code, syscall } = wordsOf(link)
  return (
    code === 'UND_ERR_CONNECT_TIMEOUT' ||
    code === BAD_PORT ||
    (syscall !== undefined && BEFORE_CONNECTION.test(syscall))
  )
}

export function isUndecodable(error: unknown): boolean {
  return UNDECODABLE.test(wordsOf(outermostWithCode(error)).code ?? '')
}

/**
 * Throws if a getter of `error` throws.
 * @param withFrames true to add the stack frames of an error without a code
 */
export function detailOf(error: unknown, withFrames: boolean): FailureDetail {
  const words = wordsOf(outermostWithCode(error))
  return withFrames && words.code === undefined && isObject(error)
    ? bare({ ...words, ...defined({ frames: framesOf(error) }) })
    : words
}

function outermostWithCode(error: unknown): Link {
  const links = chain(error)
  return links.find((link) => wordsOf(link).code !== undefined) ?? links[0] ?? {}
}

/** Stops after ten errors, because causes may form a cycle. */
function chain(error: unknown): Link[] {
  const links: Link[] = []
  for (let link = error; isObject(link) && links.length < 10; link = fieldOf(link, 'cause')) links.push(link)
  return links
}

function wordsOf(link: Link): FailureDetail {
  const syscall = fieldOf(link, 'syscall')
  const code = fieldOf(link, 'code') ?? (fieldOf(link, 'message') === 'bad port' ? BAD_PORT : undefined)
  return bare({
    name: nameOf(fieldOf(link, 'name')),
    ...(isWord(code, /^[A-Z]\w{1,63}$/) ? { code } : {}),
    ...(isWord(syscall, /^[A-Za-z_]{1,32}$/) ? { syscall } : {}),
  })
}

/**
 * Ignores fields of `Object.prototype`, where a polluted `code` could falsely prove that nothing
 * was sent.
 */
function fieldOf(link: Link, name: string): unknown {
  return Object.hasOwn(link, name) || !(name in Object.prototype) ? link[name] : undefined
}
