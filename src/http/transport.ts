/** One complete HTTP request, which the transport sends unchanged. */
export interface TransportRequest {
  /** HTTP method, upper case. */
  readonly method: string
  /** Absolute URL. */
  readonly url: string
  /** Headers by lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  /** The body, or undefined for none. */
  readonly body: string | undefined
  /** Ends the attempt, and the read of the body, when the time is up or the caller aborts. */
  readonly signal: AbortSignal
  /**
   * Returns true once it is too late to send the request. Check it after connecting and before the
   * first byte, so that a machine that slept sends nothing too late.
   */
  readonly isLate: (() => boolean) | undefined
}

/** A response whose body is either read or discarded, once. */
export interface TransportResponse {
  /** HTTP status, or 0 for a redirect that the platform hides. */
  readonly status: number
  /** The headers of the response. */
  readonly headers: ResponseHeaders
  /** Reads the body as a string, at most `maxBytes` of it after decompression. Never rejects. */
  read(maxBytes: number): Promise<BodyText>
  /** Closes the connection. A `read` in progress ends with the problem `cut`. */
  discard(): void
}

/**
 * Sends the client's requests. Each call of `send` sends one request, once, and follows no
 * redirect: the client handles retries, time limits and errors. `undiciTransport()` of
 * `customer-ordering-sdk/undici` creates one. By default, the client uses the global `fetch`.
 */
export interface Transport {
  /** Sends the request and resolves with the head of the response. Rejects with any error. */
  send(request: TransportRequest): Promise<TransportResponse>
  /**
   * Returns why an error of `send` proves that no byte of the request was sent, or false if it does
   * not. With proof, the client closes the order as not charged: a wrong proof can cost a second
   * charge. Omit this method in a wrapper that may send a request more than once.
   */
  whyUnsent?(error: unknown): false | Unsent
}

/**
 * Why no byte of a request was sent: no connection, an untrusted certificate, a transport that its
 * owner closed, or a send that came too late.
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
 * Decodes the bytes read so far in one go: in Node, decoding in pieces is several times slower and
 * makes strings that take twice the memory.
 */
export function bodyText(chunks: readonly Uint8Array[], problem?: BodyText['problem']): BodyText {
  const [first] = chunks
  const bytes = chunks.length > 1 ? joined(chunks) : first
  // A cut body needs its own decoder. In stream mode, the decoder drops half a character at the
  // body's end, but remembers it for the next body.
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
