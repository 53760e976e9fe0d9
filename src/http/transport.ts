/** One complete HTTP request, which the transport sends unchanged. */
export interface TransportRequest {
  /** HTTP method in upper case. */
  readonly method: string
  /** Absolute URL. */
  readonly url: string
  /** Headers by lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  /** The body, or undefined for none. */
  readonly body: string | undefined
  /** Aborts the attempt and the read of the body when time runs out or the caller aborts. */
  readonly signal: AbortSignal
  /**
   * Returns true once it is too late to send the request.
   *
   * Call this after connecting and before the first byte, because the machine may have slept since
   * the request was made.
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
 * Sends the client's requests.
 *
 * Each call of `send` sends one request, once, and follows no redirect: the client handles retries,
 * time limits and errors. By default, the client uses the global `fetch`. For Node,
 * `undiciTransport()` of `customer-ordering-sdk/undici` creates a transport.
 */
export interface Transport {
  /**
   * Sends the request. Resolves once the response headers have arrived. May reject with any error.
   */
  send(request: TransportRequest): Promise<TransportResponse>
  /**
   * Returns why an error of `send` proves that no byte of the request was sent, or false if the
   * error proves nothing.
   *
   * After such a proof, the client closes the order as not charged, so a wrong proof can cost a
   * second charge. Omit this method in a wrapper that may send a request more than once.
   */
  whyUnsent?(error: unknown): false | Unsent
  /**
   * Returns true if the last request was sent at most once.
   *
   * Without this method, the client assumes that a refusal may be the response to a hidden
   * repetition of a request that was charged. Omit this method in a wrapper that may send a request
   * more than once.
   */
  sendsOnce?(): boolean
}

/**
 * Why no byte of a request was sent: there was no connection, the certificate was not trusted, the
 * transport was closed, or it was too late to send.
 */
export type Unsent = 'unreachable' | 'certificate' | 'transport_closed' | 'late'

/** The methods of a response's headers that the client calls. */
export interface ResponseHeaders {
  /** Returns the value of a header, or null. Names are case-insensitive. */
  get(name: string): string | null
  /** Calls `each` once for each header, with its value and its lower-case name. */
  forEach(each: (value: string, name: string) => void): void
}

/** A decoded body, which may be incomplete. */
export interface BodyText {
  /** The body, or the part that was read, as a string. */
  readonly text: string
  /** Why the body is incomplete. Undefined for a complete body. */
  readonly problem: 'cut' | 'too_large' | 'undecodable' | undefined
}
