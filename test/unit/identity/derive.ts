import { createHash } from 'node:crypto'

/**
 * UUID v5 by RFC 9562, section 5.5, with Node's own SHA-1: a reference that shares no code with the
 * package.
 */
export function derive(name: string): string {
  const namespace = Buffer.from('84a1a9a0ff0d4bf6bce3f9b27cb0e095', 'hex')
  const hash = createHash('sha1').update(namespace).update(name, 'utf8').digest().subarray(0, 16)
  hash.writeUInt8((hash.readUInt8(6) & 0x0f) | 0x50, 6)
  hash.writeUInt8((hash.readUInt8(8) & 0x3f) | 0x80, 8)
  return hash.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
