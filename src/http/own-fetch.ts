/** Why a body is not there as a whole. */
export type BodyProblem = 'cut' | 'timeout' | 'aborted' | 'too_large'

/** What was read of a body, decoded. */
export interface BodyText {
  readonly text: string
  /** Undefined if the text is complete. */
  readonly problem: BodyProblem | undefined
}

let decoder: TextDecoder | undefined

/**
 * What was read of a body. Decoded at once: a decoder that gets a text in pieces is several times slower in Node, and makes
 * texts that take twice the memory.
 */
export function bodyText(chunks: readonly Uint8Array[], problem?: BodyProblem): BodyText {
  const [first] = chunks
  const bytes = chunks.length > 1 ? joined(chunks) : first
  // Keeps nothing between two texts. Of a text that was cut, half a character is left out and not replaced.
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

/** What is looked at of the headers of an answer. */
export interface AnswerHeaders {
  get(name: string): string | null
  forEach(each: (value: string, name: string) => void): void
}

/** What this package knows of its own fetches. */
interface OwnFetch {
  /** Its connections are its own, from DNS to the last byte, and it sends nothing twice. */
  readonly provesUnsent: boolean
}

const ownFetches = new WeakMap<object, OwnFetch>()

/**
 * Says that a fetch is this package's own: it sends exactly one request and answers as the platform would. With
 * `provesUnsent`, a failure to connect, as it reports it, proves that nothing was sent.
 */
export function declareOwnFetch(fetch: typeof globalThis.fetch, own: OwnFetch): void {
  ownFetches.set(fetch, own)
}

/** True for exactly the function that was declared: what a wrapper makes of it is not known. */
export function isOwnFetch(fetch: typeof globalThis.fetch): boolean {
  return ownFetches.has(fetch)
}

/** True for exactly the function that was declared: a wrapper, a proxy included, may have sent the request before. */
export function provesUnsent(fetch: typeof globalThis.fetch): boolean {
  return ownFetches.get(fetch)?.provesUnsent === true
}

/** Why an own fetch sent nothing: its owner closed its transport, or {@link IS_LATE} said so. */
export type HeldBack = 'transport_closed' | 'late'

const heldBack = new WeakMap<object, HeldBack>()

/**
 * Says of a new error that an own fetch throws it in place of sending, before anything of this one request was sent. Only
 * the error itself proves that, never its code: whoever closes connections under a request shows the same code.
 */
export function declareHeldBack<T extends Error>(error: T, why: HeldBack): T {
  heldBack.set(error, why)
  return error
}

/** Why this own fetch threw the error in place of sending. What a wrapper passes on proves nothing of its other requests. */
export function whyHeldBack(fetch: typeof globalThis.fetch, thrown: unknown): HeldBack | undefined {
  return isOwnFetch(fetch) && typeof thrown === 'object' && thrown !== null ? heldBack.get(thrown) : undefined
}

/**
 * Where an own fetch finds, in its `init`, the last look at the clock: `true` if the request must not be sent any more. It
 * is asked right before the request is written, because a machine may sleep while it connects.
 */
export const IS_LATE: unique symbol = Symbol('isLate')

/** Where an answer of this package's own fetches has its body, for readers that need no web stream. */
export const BODY: unique symbol = Symbol('body')

/** The body of an answer, to be read or let go of once. Ended by the signal of its request. */
export interface OwnBody {
  /** The decoded text, at most `maxBytes` of it; never rejects. */
  read(maxBytes: number): Promise<BodyText>
  /** Gives the connection up. */
  discard(): void
}

/** The body of an answer of this package's own fetches; of no other. */
export function ownBody(response: Response): OwnBody | undefined {
  return (response as { readonly [BODY]?: OwnBody })[BODY]
}

/** Where an answer of this package's own fetches has its headers as they came, of which no `Headers` was made. */
export const HEADERS: unique symbol = Symbol('headers')

/** The headers of an answer, without making a `Headers` where this package's own fetch answered. */
export function headersOf(response: Response): AnswerHeaders {
  return (response as { readonly [HEADERS]?: AnswerHeaders })[HEADERS] ?? response.headers
}
