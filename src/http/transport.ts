/** One complete HTTP request: nothing is added or changed on its way. */
export interface TransportRequest {
  /** HTTP method, upper case. */
  readonly method: string
  /** Absolute URL. */
  readonly url: string
  /** Headers by lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  /** The body, or undefined for none. */
  readonly body: string | undefined
  /** Ends the attempt and the read of its body when the time is up or the caller aborts. */
  readonly signal: AbortSignal
  /**
   * Returns true once it is too late to send the request. A transport should check this between the
   * connection and the first byte, so that nothing is sent late after the machine slept.
   */
  readonly isLate: (() => boolean) | undefined
}

/** Status and headers of a response, and its body, which is either read or discarded, once. */
export interface TransportResponse {
  /** 0 for a redirect that the platform does not show. */
  readonly status: number
  /** The headers of the response. */
  readonly headers: ResponseHeaders
  /** Reads the body as a string, at most `maxBytes` of it after decompression. Never rejects. */
  read(maxBytes: number): Promise<BodyText>
  /** Closes the connection. A `read` in progress ends as `cut`. */
  discard(): void
}

/**
 * How the client sends: one call of `send` is one request, never repeated and never redirected. The
 * client handles retries, time limits and errors. `undiciTransport()` of
 * `customer-ordering-sdk/undici` makes one; a client without the option uses the global `fetch`.
 */
export interface Transport {
  /** Sends the request and resolves with the head of the response. Rejects with any error. */
  send(request: TransportRequest): Promise<TransportResponse>
  /**
   * Returns why an error of `send` proves that no byte of the request left, or false. Money depends
   * on this: the order is closed as not charged. Omit the method in a wrapper that may send a
   * request more than once, because then no error is proof.
   */
  whyUnsent?(error: unknown): false | Unsent
}

/**
 * Why no byte of a request left: no connection, a certificate that is not trusted, a transport that
 * its owner closed, or a send that came too late.
 */
export type Unsent = 'unreachable' | 'certificate' | 'transport_closed' | 'late'

/** The part of a response's headers that the client reads. */
export interface ResponseHeaders {
  /** Returns the value of a header, or null. Names are case-insensitive. */
  get(name: string): string | null
  /** Calls back once for each header, with its lower-case name. */
  forEach(each: (value: string, name: string) => void): void
}

/** The decoded part of a body. */
export interface BodyText {
  /** The body as a string. */
  readonly text: string
  /** Undefined if the body is complete. */
  readonly problem: 'cut' | 'too_large' | 'undecodable' | undefined
}

let decoder: TextDecoder | undefined

/**
 * The body read so far. It is decoded in one go: in Node, decoding in pieces is several times
 * slower and makes strings that take twice the memory.
 */
export function bodyText(chunks: readonly Uint8Array[], problem?: BodyText['problem']): BodyText {
  const [first] = chunks
  const bytes = chunks.length > 1 ? joined(chunks) : first
  // The decoder keeps nothing between two bodies. It drops half a character at the end of a cut
  // body.
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
