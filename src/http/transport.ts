/** One HTTP request, complete: nothing is added or changed on the way. */
export interface TransportRequest {
  readonly method: string
  /** Absolute URL. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
  /** Ends the attempt, the reading of its body included: its time is up, or the caller gives up. */
  readonly signal: AbortSignal
  /**
   * True once the request must not be sent any more. A transport that can ask it between the
   * connection and the first byte keeps a machine that slept while it connected from sending late.
   */
  readonly isLate: (() => boolean) | undefined
}

/** The head of a response, and its body, which is read or discarded once. */
export interface TransportResponse {
  /** 0 for a redirect that the platform does not show. */
  readonly status: number
  readonly headers: ResponseHeaders
  /** Reads the body as text, at most `maxBytes` of it after decompression. Never rejects. */
  read(maxBytes: number): Promise<BodyText>
  /** Gives the connection up. A `read` that is under way ends, as `cut`. */
  discard(): void
}

/**
 * How the client sends: one call of `send` is one request, never repeated and never redirected.
 * Retries, time limits and errors are the client's. `undiciTransport()` of
 * `customer-ordering-sdk/undici` makes one; a client without the option uses the global `fetch`.
 */
export interface Transport {
  /** Sends the request and resolves with the head of the response. Rejects with any error. */
  send(request: TransportRequest): Promise<TransportResponse>
  /**
   * Says of an error of `send` why it proves that not one byte of that request has left, or false.
   * Money depends on it: an order is closed as not charged. Left out, as by a wrapper that may have
   * sent the request before, no error proves anything.
   */
  whyUnsent?(error: unknown): false | Unsent
}

/**
 * Why no byte of a request left: no connection, a certificate that nobody trusts, a transport that
 * its owner has closed, or one that came too late to send.
 */
export type Unsent = 'unreachable' | 'certificate' | 'transport_closed' | 'late'

/** What the client reads of the headers of a response. */
export interface ResponseHeaders {
  get(name: string): string | null
  forEach(each: (value: string, name: string) => void): void
}

/** What was read of a body, decoded. */
export interface BodyText {
  readonly text: string
  /** Undefined if the text is complete. */
  readonly problem: 'cut' | 'too_large' | 'undecodable' | undefined
}

let decoder: TextDecoder | undefined

/**
 * What was read of a body. Decoded at once: a decoder that gets a text in pieces is several times slower in Node, and makes
 * texts that take twice the memory.
 */
export function bodyText(chunks: readonly Uint8Array[], problem?: BodyText['problem']): BodyText {
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
