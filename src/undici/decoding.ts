import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream'
import { constants, createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'

/** Codings that the service is told to choose from. As with the platform's fetch, brotli only where no old proxy can look into it. */
export function acceptEncoding(protocol: string): string {
  return protocol === 'https:' ? 'gzip, br' : 'gzip'
}

/** A service must not have us stack decoders without end. */
const MOST_CODINGS = 5

/** A body that ends early is given out as far as it goes, as by the platform's fetch: who parses the text will see. */
const LENIENT = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH }
const LENIENT_BROTLI = {
  flush: constants.BROTLI_OPERATION_FLUSH,
  finishFlush: constants.BROTLI_OPERATION_FLUSH,
}

type Decoder = Readable & NodeJS.ReadWriteStream

/** What undoes a coding, one after the other; nothing if the coding is not known. */
function decodersOf(coding: string): readonly Decoder[] | undefined {
  if (coding === 'gzip' || coding === 'x-gzip') return [createGunzip(LENIENT)]
  if (coding === 'br') return [createBrotliDecompress(LENIENT_BROTLI)]
  return coding === 'deflate' ? [new ZlibHeader(), createInflate(LENIENT)] : undefined
}

/**
 * "deflate" means the zlib format (RFC 9110 section 8.4.1.2), and some services send it without its header. Put before it,
 * the header makes the one of the other; the checksum at the end, which is missing then, is not asked for.
 */
class ZlibHeader extends Transform {
  #begun = false

  override _transform(chunk: Uint8Array, _encoding: string, done: TransformCallback): void {
    const [first] = chunk
    if (!this.#begun && first !== undefined) {
      this.#begun = true
      // The method in a header is 8, deflate; that of the platform's fetch is no other test.
      if ((first & 0x0f) !== 8) this.push(Uint8Array.of(0x78, 0x9c))
    }
    done(null, chunk)
  }
}

/** A body as it was before it was compressed. With a coding that is not known it stays as it came. */
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
  // Ends all of them when one ends; whoever reads the last one learns of it.
  pipeline([body, ...decoders], () => {})
  return decoders.at(-1) ?? body
}
