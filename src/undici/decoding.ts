import { pipeline, type Readable } from 'node:stream'
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

function decoder(coding: string): (Readable & NodeJS.ReadWriteStream) | undefined {
  if (coding === 'gzip' || coding === 'x-gzip') return createGunzip(LENIENT)
  if (coding === 'br') return createBrotliDecompress(LENIENT_BROTLI)
  return coding === 'deflate' ? createInflate(LENIENT) : undefined
}

/** A body as it was before it was compressed. With a coding that is not known it stays as it came. */
export function decoded(body: Readable, contentEncoding: string): Readable {
  const codings = contentEncoding
    .toLowerCase()
    .split(',')
    .map((coding) => coding.trim())
    .filter((coding) => coding !== '')
  if (codings.length === 0 || codings.length > MOST_CODINGS) return body
  const decoders = codings.toReversed().map(decoder)
  let last = body
  for (const next of decoders) {
    if (next === undefined) return body
    last = next
  }
  // Ends all of them when one ends; whoever reads the last one learns of it.
  pipeline([body, ...decoders.filter((next) => next !== undefined)], () => {})
  return last
}
