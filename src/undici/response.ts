import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { bodyText } from '../http/attempt.ts'
import { isUndecodable } from '../http/node.ts'
import type { BodyText, ResponseHeaders, TransportResponse } from '../http/transport.ts'
import { decoded } from './decoding.ts'

/** Avoids `Headers` and web streams: creating them takes longer than sending the request. */
export class UndiciResponse implements TransportResponse {
  readonly status: number
  readonly headers: ResponseHeaders
  readonly #stream: Readable

  constructor({ statusCode, headers, body }: Dispatcher.ResponseData) {
    this.status = statusCode
    this.headers = new RawHeaders(headers)
    const encoding = headers['content-encoding']
    const stream = encoding === undefined ? body : decoded(body, String(encoding))
    this.#stream = stream
    // If the connection breaks before the body is read, the error must not end the process.
    body.on('error', () => {})
    if (stream !== body) stream.on('error', () => {})
  }

  discard(): void {
    this.#stream.destroy()
  }

  read(maxBytes: number): Promise<BodyText> {
    const stream = this.#stream
    return new Promise((resolve) => {
      const chunks: Uint8Array[] = []
      let bytes = 0
      let settled = false
      const settle = (problem?: BodyText['problem']): void => {
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
      stream.once('error', (error) => settle(isUndecodable(error) ? 'undecodable' : 'cut'))
      stream.once('close', () => settle('cut'))
      // A stream that broke before this read emits no more events.
      if (stream.destroyed) settle('cut')
    })
  }
}

class RawHeaders implements ResponseHeaders {
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
