import { ConfigurationError } from './errors/classes.ts'
import type { Codec } from './options.ts'

const NONCE = 12

/**
 * Makes a codec that encrypts with AES-256-GCM.
 *
 * The codec encrypts with the first key and decrypts with any of the keys, so you can rotate keys.
 * The codec needs WebCrypto, which browsers provide only in secure contexts, such as pages served
 * over https.
 *
 * @param keys keys of 32 random bytes each, from your secret manager
 * @throws {ConfigurationError} if a key is not 32 bytes long
 * @example
 * const codec = aesGcm(Buffer.from(process.env.ORDERS_KEY ?? '', 'base64'))
 */
export function aesGcm(...keys: readonly [Uint8Array, ...Uint8Array[]]): Codec {
  const all = keys.map((key, index) => {
    if (!(key instanceof Uint8Array) || key.byteLength !== 32)
      throw new ConfigurationError(`Key ${index + 1} of aesGcm must be a Uint8Array of 32 bytes.`)
    return importLater(key)
  })
  const [first] = all
  if (first === undefined) throw new ConfigurationError('aesGcm requires a key of 32 bytes.')
  return {
    encrypt: async (text) => {
      // The nonce is random: using a nonce twice with the same key breaks AES-GCM.
      const iv = crypto.getRandomValues(new Uint8Array(NONCE))
      const sealed = await crypto.subtle.encrypt(
        { name: 'AES-GCM', iv },
        await first(),
        new TextEncoder().encode(text),
      )
      return toBase64(iv) + toBase64(new Uint8Array(sealed))
    },
    decrypt: async (text) => {
      const bytes = fromBase64(text)
      const [iv, sealed] = [bytes.subarray(0, NONCE), bytes.subarray(NONCE)]
      for (const imported of all) {
        const key = await imported()
        try {
          const opened = await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, key, sealed)
          return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(opened)
        } catch {
          // Another key may have encrypted the text.
        }
      }
      throw new Error('No key of aesGcm decrypts the data. Add the key that encrypted it.')
    },
  }
}

function importLater(key: Uint8Array): () => Promise<CryptoKey> {
  // A copy, because the caller may overwrite the array later.
  const secret = new Uint8Array(key)
  let imported: Promise<CryptoKey> | undefined
  return () => {
    imported ??= crypto.subtle.importKey('raw', secret, 'AES-GCM', false, ['encrypt', 'decrypt'])
    return imported
  }
}

function toBase64(bytes: Uint8Array): string {
  let binary = ''
  // Passing all bytes as arguments of one call could overflow the stack.
  for (const byte of bytes) binary += String.fromCharCode(byte)
  return btoa(binary)
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
}
