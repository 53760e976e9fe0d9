import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream'
import { constants, createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'

/** Like the platform's fetch, omits brotli over http: an old proxy may not understand it. */
export function acceptEncoding(protocol: string): string {
  return protocol === 'https:' ? 'gzip, br' : 'gzip'
}

/** Limits how many decoders a server can make the client create. */
const MAX_CODINGS = 5

/**
 * If a body ends early, these options make the decoder return the part that arrived, as the
 * platform's fetch does. Parsing that part then fails.
 */
const LENIENT = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH }
const LENIENT_BROTLI = {
  flush: constants.BROTLI_OPERATION_FLUSH,
  finishFlush: constants.BROTLI_OPERATION_FLUSH,
}

type Decoder = Readable & NodeJS.ReadWriteStream

function decodersOf(coding: string): readonly Decoder[] | undefined {
  if (coding === 'gzip' || coding === 'x-gzip') return [createGunzip(LENIENT)]
  if (coding === 'br') return [createBrotliDecompress(LENIENT_BROTLI)]
  return coding === 'deflate' ? [new ZlibHeader(), createInflate(LENIENT)] : undefined
}

/**
 * Adds a missing zlib header. "deflate" means the zlib format (RFC 9110 section 8.4.1.2), but some
 * services omit its header and its checksum. The decoder needs only the header.
 */
class ZlibHeader extends Transform {
  #begun = false

  override _transform(chunk: Uint8Array, _encoding: string, done: TransformCallback): void {
    const [first] = chunk
    if (!this.#begun && first !== undefined) {
      this.#begun = true
      // The low four bits of a zlib header are the method, 8 for deflate. The platform's fetch
      // makes the same test.
      if ((first & 0x0f) !== 8) this.push(Uint8Array.of(0x78, 0x9c))
    }
    done(null, chunk)
  }
}

export function decoded(body: Readable, contentEncoding: string): Readable {
  const codings = contentEncoding
    .toLowerCase()
    .split(',')
    .map((coding) => coding.trim())
    .filter((coding) => coding !== '')
  if (codings.length === 0 || codings.length > MAX_CODINGS) return body
  const decoders: Decoder[] = []
  for (const coding of codings.toReversed()) {
    const added = decodersOf(coding)
    if (added === undefined) return body
    decoders.push(...added)
  }
  // If one stream fails, pipeline destroys all of them, and the reader gets the error.
  pipeline([body, ...decoders], () => {})
  return decoders.at(-1) ?? body
}
