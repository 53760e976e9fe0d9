/** Why a body is not there as a whole. */
export type BodyProblem = 'cut' | 'timeout' | 'aborted' | 'too_large'

/** What was read of a body, decoded. */
export interface BodyText {
  readonly text: string
  readonly problem?: BodyProblem
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
