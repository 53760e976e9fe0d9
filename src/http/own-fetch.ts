/** Why a body is not there as a whole. */
export type BodyProblem = 'cut' | 'timeout' | 'aborted' | 'too_large'

/** What was read of a body, decoded. */
export interface BodyText {
  readonly text: string
  readonly problem?: BodyProblem
}

/** Fetches of this package whose connections are their own, from DNS to the last byte, and that send nothing twice. */
const provingUnsent = new WeakSet<object>()

/** Says of a fetch that a failure to connect, as it reports it, proves that nothing was sent. */
export function declareProvingUnsent(fetch: typeof globalThis.fetch): void {
  provingUnsent.add(fetch)
}

/** True for exactly the function that was declared: a wrapper, a proxy included, may have sent the request before. */
export function provesUnsent(fetch: typeof globalThis.fetch): boolean {
  return provingUnsent.has(fetch)
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
