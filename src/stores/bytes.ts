/** By default, a TextDecoder drops a byte order mark and replaces invalid bytes. */
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Decodes a string that the database returned as bytes. */
export function toText(value: unknown): unknown {
  return value instanceof Uint8Array ? UTF8.decode(value) : value
}
