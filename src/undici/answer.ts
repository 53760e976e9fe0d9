import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import {
  type AnswerHeaders,
  BODY,
  type BodyText,
  bodyText,
  HEADERS,
  type OwnBody,
} from '../http/own-fetch.ts'
import { decoded } from './decoding.ts'

/** Statuses whose responses have no body (Fetch standard, "null body status"). */
const WITHOUT_BODY: ReadonlySet<number> = new Set([101, 103, 204, 205, 304])

/** An answer of undici as `fetch` gives it. */
export function toResponse(url: string, answer: Dispatcher.ResponseData): Response {
  return new UndiciResponse(url, answer)
}

/**
 * Headers and the web stream of the body are made when somebody asks for them: making both for every answer would take
 * longer than sending the request.
 */
class UndiciResponse implements Response {
  readonly status: number
  readonly ok: boolean
  readonly statusText: string
  readonly url: string
  /** Redirects are never followed. */
  readonly redirected = false
  readonly type = 'basic'
  readonly [BODY]: OwnBody
  readonly [HEADERS]: AnswerHeaders
  readonly #stream: Readable
  #headers: Headers | undefined
  #whole: Response | undefined

  constructor(url: string, { statusCode, statusText, headers, body }: Dispatcher.ResponseData) {
    this.status = statusCode
    this.ok = statusCode >= 200 && statusCode < 300
    this.statusText = statusText
    this.url = url
    this[HEADERS] = new RawHeaders(headers)
    const encoding = headers['content-encoding']
    const stream = encoding === undefined ? body : decoded(body, String(encoding))
    this.#stream = stream
    // Nobody may be reading when the connection breaks, which is no reason to end the process.
    body.on('error', () => {})
    if (stream !== body) stream.on('error', () => {})
    this[BODY] = {
      read: (maxBytes) => readText(stream, maxBytes),
      discard: () => void stream.destroy(),
    }
  }

  get headers(): Headers {
    if (this.#headers === undefined) {
      const headers = new Headers()
      this[HEADERS].forEach((value, name) => {
        headers.append(name, value)
      })
      this.#headers = headers
    }
    return this.#headers
  }

  /** The platform's own response around the body: whoever wants more than the client does. */
  get #platform(): Response {
    const empty = WITHOUT_BODY.has(this.status)
    if (empty) this.#stream.resume()
    this.#whole ??= new Response(
      empty ? null : (Readable.toWeb(this.#stream) as ReadableStream<Uint8Array>),
      {
        headers: this.headers,
      },
    )
    return this.#whole
  }

  get body(): Response['body'] {
    return this.#platform.body
  }

  get bodyUsed(): boolean {
    return this.#whole?.bodyUsed ?? this.#stream.readableDidRead
  }

  text(): Promise<string> {
    return this.#platform.text()
  }

  json(): Promise<unknown> {
    return this.#platform.json()
  }

  arrayBuffer(): Promise<ArrayBuffer> {
    return this.#platform.arrayBuffer()
  }

  bytes(): Promise<Uint8Array<ArrayBuffer>> {
    return this.#platform.bytes()
  }

  blob(): Promise<Blob> {
    return this.#platform.blob()
  }

  formData(): Promise<FormData> {
    return this.#platform.formData()
  }

  clone(): Response {
    const { status, statusText, headers } = this
    return new Response(this.#platform.clone().body, { status, statusText, headers })
  }

  get [Symbol.toStringTag](): string {
    return 'Response'
  }
}

/** Headers as undici has them, by names in lower case. */
class RawHeaders implements AnswerHeaders {
  readonly #raw: Dispatcher.ResponseData['headers']

  constructor(raw: Dispatcher.ResponseData['headers']) {
    this.#raw = raw
  }

  get(name: string): string | null {
    const key = name.toLowerCase()
    const value = Object.hasOwn(this.#raw, key) ? this.#raw[key] : undefined
    return Array.isArray(value) ? value.join(', ') : (value ?? null)
  }

  forEach(each: (value: string, name: string) => void): void {
    for (const [name, value] of Object.entries(this.#raw))
      for (const line of Array.isArray(value) ? value : [value]) if (line !== undefined) each(line, name)
  }
}

/** Reads to the end, to `maxBytes`, or to where the connection broke. */
function readText(stream: Readable, maxBytes: number): Promise<BodyText> {
  return new Promise((resolve) => {
    const chunks: Uint8Array[] = []
    let bytes = 0
    let settled = false
    const settle = (problem?: 'cut' | 'too_large'): void => {
      if (settled) return
      settled = true
      resolve(bodyText(chunks, problem))
    }
    stream.on('data', (chunk: Uint8Array) => {
      bytes += chunk.byteLength
      if (bytes <= maxBytes) chunks.push(chunk)
      else {
        settle('too_large')
        stream.destroy()
      }
    })
    stream.once('end', () => settle())
    stream.once('error', () => settle('cut'))
    stream.once('close', () => settle('cut'))
    // What failed before anybody looked will not tell again.
    if (stream.destroyed) settle('cut')
  })
}
