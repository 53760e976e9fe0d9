import { bare, defined, isObject } from '../defined.ts'
import type { Unsent } from './transport.ts'

/**
 * Facts about a failure before a response: only names and codes, never a message, which may contain
 * a secret.
 */
export interface FailureDetail {
  readonly name: string
  readonly code?: string
  readonly syscall?: string
  /** Stack frames of the caller's own fetch, which help to find a bug in it. */
  readonly frames?: string
}

/** An error or one of its causes. */
type Link = Readonly<Record<string, unknown>>

/**
 * System calls that happen before a connection exists. The error's code alone proves nothing: on an
 * established connection, Linux reports a lost route as `EHOSTUNREACH` or `ENETUNREACH` of `read`,
 * and by then the order may exist (measured, test/server/unsent.test.ts).
 */
const BEFORE_CONNECTION = /^(connect|getaddrinfo|query[A-Z]\w*)$/

/**
 * zlib's codes for a body in another format than its header states. A body that ends early counts
 * as cut off.
 */
const UNDECODABLE = /^(Z_DATA_ERROR$|ERR_+(BROTLI|ERROR_FORMAT))/

const CERTIFICATE =
  /^(CERT_|ERR_TLS_CERT_ALTNAME_INVALID$|DEPTH_ZERO_SELF_SIGNED_CERT$|SELF_SIGNED_CERT_IN_CHAIN$|UNABLE_TO_VERIFY_|UNABLE_TO_GET_ISSUER_CERT)/

/**
 * OpenSSL's codes for a port without TLS. An established connection may report them as well
 * (measured, test/server/unsent.test.ts), so they are proof only while connecting.
 */
const NOT_TLS = /^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)$/

/**
 * Returns why an error of Node's sockets proves that nothing was sent, or false if it does not. The
 * codes are proof only for a transport that sends each request once, over its own connections. May
 * throw, because a thrown value may itself throw when its fields are read.
 * @param connecting true if the transport knows that the error ended the attempt to connect
 */
export function provenUnsent(error: unknown, connecting: boolean): false | Unsent {
  const link = tellingLink(error)
  const { code } = wordsOf(link)
  if (code === undefined) return false
  const errors = fieldOf(link, 'errors')
  // Node tries every address of a host. Unless all of them failed to connect, the request may have
  // been sent.
  const tries = Array.isArray(errors) ? errors : [link]
  if (tries.length > 0 && tries.every((each) => isObject(each) && neverConnected(each))) return 'unreachable'
  if (connecting && NOT_TLS.test(code)) return 'unreachable'
  return CERTIFICATE.test(code) && 'certificate'
}

/** Our code for a port that the Fetch standard blocks: Node's fetch has only a message for it. */
const BAD_PORT = 'BAD_PORT'

function neverConnected(link: Link): boolean {
  const { code, syscall } = wordsOf(link)
  return (
    code === 'UND_ERR_CONNECT_TIMEOUT' ||
    code === BAD_PORT ||
    (syscall !== undefined && BEFORE_CONNECTION.test(syscall))
  )
}

/** True for a body that arrived but cannot be decompressed. */
export function isUndecodable(error: unknown): boolean {
  return UNDECODABLE.test(wordsOf(tellingLink(error)).code ?? '')
}

/**
 * Describes an error by the codes in its chain of causes. May throw, because a thrown value may
 * itself throw when its fields are read.
 * @param withFrames true to add the stack frames of an error without a code
 */
export function detailOf(error: unknown, withFrames: boolean): FailureDetail {
  const words = wordsOf(tellingLink(error))
  return withFrames && words.code === undefined && isObject(error)
    ? bare({ ...words, ...defined({ frames: framesOf(error) }) })
    : words
}

/** The outermost error of the chain that has a code, or the error itself. */
function tellingLink(error: unknown): Link {
  const links = chain(error)
  return links.find((link) => wordsOf(link).code !== undefined) ?? links[0] ?? {}
}

/**
 * Returns the frames of a stack, without the message and without frames that may contain a password
 * or a query.
 */
function framesOf({ stack, message }: Link): string | undefined {
  if (typeof stack !== 'string' || typeof message !== 'string' || !stack.includes(message)) return undefined
  const lines = stack.slice(stack.indexOf(message) + message.length).split('\n')
  const places = lines.filter((line) => /^ +at .*:\d+:\d+\)?$/.test(line) && !/\?|\/\/[^/]*@/.test(line))
  return places.length === 0 ? undefined : places.join('\n')
}

/** The error and its causes, outermost first; at most ten, because causes may form a ring. */
function chain(error: unknown): Link[] {
  const links: Link[] = []
  for (let link = error; isObject(link) && links.length < 10; link = fieldOf(link, 'cause')) links.push(link)
  return links
}

/** The name and codes of one error. */
function wordsOf(link: Link): FailureDetail {
  const [name, syscall] = [fieldOf(link, 'name'), fieldOf(link, 'syscall')]
  const code = fieldOf(link, 'code') ?? (fieldOf(link, 'message') === 'bad port' ? BAD_PORT : undefined)
  return bare({
    name: isWord(name, /^[A-Za-z]{1,64}$/) ? name : 'Error',
    ...(isWord(code, /^[A-Z]\w{1,63}$/) ? { code } : {}),
    ...(isWord(syscall, /^[A-Za-z_]{1,32}$/) ? { syscall } : {}),
  })
}

/**
 * A field of the error or its class, but not of `Object.prototype`: a polluted `code` could falsely
 * prove that nothing was sent.
 */
function fieldOf(link: Link, name: string): unknown {
  return Object.hasOwn(link, name) || !(name in Object.prototype) ? link[name] : undefined
}

/**
 * True for a string in the fixed shape of names and codes. A secret in an error of the caller's
 * fetch does not have this shape.
 */
function isWord(value: unknown, shape: RegExp): value is string {
  return typeof value === 'string' && shape.test(value)
}
