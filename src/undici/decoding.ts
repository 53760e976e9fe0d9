import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream'
import { constants, createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'

/**
 * Codings that the client accepts. As in the platform's fetch, brotli only over https, because an
 * old proxy may not understand it.
 */
export function acceptEncoding(protocol: string): string {
  return protocol === 'https:' ? 'gzip, br' : 'gzip'
}

/** Maximum number of codings: a server must not make the client stack decoders without end. */
const MOST_CODINGS = 5

/**
 * Return a body that ends early as far as it goes, as the platform's fetch does. Parsing then
 * fails.
 */
const LENIENT = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH }
const LENIENT_BROTLI = {
  flush: constants.BROTLI_OPERATION_FLUSH,
  finishFlush: constants.BROTLI_OPERATION_FLUSH,
}

type Decoder = Readable & NodeJS.ReadWriteStream

/** The decoders of a list of codings, in order. Undefined if one of them is not known. */
function decodersOf(coding: string): readonly Decoder[] | undefined {
  if (coding === 'gzip' || coding === 'x-gzip') return [createGunzip(LENIENT)]
  if (coding === 'br') return [createBrotliDecompress(LENIENT_BROTLI)]
  return coding === 'deflate' ? [new ZlibHeader(), createInflate(LENIENT)] : undefined
}

/**
 * "deflate" means the zlib format (RFC 9110 section 8.4.1.2), but some services send it without the
 * zlib header. With that header added, one decoder reads both. The missing checksum at the end is
 * not checked.
 */
class ZlibHeader extends Transform {
  #begun = false

  override _transform(chunk: Uint8Array, _encoding: string, done: TransformCallback): void {
    const [first] = chunk
    if (!this.#begun && first !== undefined) {
      this.#begun = true
      // The method in the header is 8, deflate. The platform's fetch makes the same test.
      if ((first & 0x0f) !== 8) this.push(Uint8Array.of(0x78, 0x9c))
    }
    done(null, chunk)
  }
}

/** Returns the decompressed body. With an unknown coding, returns the body unchanged. */
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
  // Destroys all streams when one fails. The reader of the last one gets the error.
  pipeline([body, ...decoders], () => {})
  return decoders.at(-1) ?? body
}
