import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream'
import { constants, createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'

/**
 * The codings that the client accepts. Like the platform's fetch, it accepts brotli only over
 * https: over http, an old proxy may not understand it.
 */
export function acceptEncoding(protocol: string): string {
  return protocol === 'https:' ? 'gzip, br' : 'gzip'
}

/** Maximum number of codings, so that a server cannot make the client stack decoders endlessly. */
const MOST_CODINGS = 5

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

/** Returns the decoders of one coding, in order, or undefined if the coding is unknown. */
function decodersOf(coding: string): readonly Decoder[] | undefined {
  if (coding === 'gzip' || coding === 'x-gzip') return [createGunzip(LENIENT)]
  if (coding === 'br') return [createBrotliDecompress(LENIENT_BROTLI)]
  return coding === 'deflate' ? [new ZlibHeader(), createInflate(LENIENT)] : undefined
}

/**
 * Adds the zlib header if it is missing. "deflate" means the zlib format (RFC 9110 section
 * 8.4.1.2), but some services omit the header. The decoder does not need the missing checksum.
 */
class ZlibHeader extends Transform {
  #begun = false

  override _transform(chunk: Uint8Array, _encoding: string, done: TransformCallback): void {
    const [first] = chunk
    if (!this.#begun && first !== undefined) {
      this.#begun = true
      // A zlib header begins with the method, 8 for deflate. The platform's fetch makes the same
      // test.
      if ((first & 0x0f) !== 8) this.push(Uint8Array.of(0x78, 0x9c))
    }
    done(null, chunk)
  }
}

/** Returns the decompressed body, or the body unchanged if a coding is unknown. */
export function decoded(body: Readable, contentEncoding: string): Readable {
  const codings = contentEncoding
    .toLowerCase()
    .split(',')
    .map((coding) => coding.trim())
    .filter((coding) => coding !== '')
  if (codings.length === 0 || codings.length > MOST_CODINGS) return body
  const decoders: Decoder[] = []
  for (const coding of codings.toReversed()) {
    const added = decodersOf(coding)
    if (added === undefined) return body
    decoders.push(...added)
  }
  // Destroys all streams if one fails. The reader of the last stream gets the error.
  pipeline([body, ...decoders], () => {})
  return decoders.at(-1) ?? body
}
