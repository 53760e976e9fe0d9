import { expect, it } from 'vitest'
import { aesGcm } from '../../src/aes-gcm.ts'
import { ConfigurationError } from '../../src/errors/classes.ts'

const key = (byte: number): Uint8Array => new Uint8Array(32).fill(byte)
const TEXT = 'order of @ada – 注文 \u{1f6d2} \ufeff'

it('aesGcm opens what it sealed, and seals the same text differently each time', async () => {
  const codec = aesGcm(key(1))
  const sealed = await Promise.all([codec.encrypt(TEXT), codec.encrypt(TEXT)])
  expect(sealed[0]).not.toBe(sealed[1])
  for (const each of sealed) {
    expect(each).toMatch(/^[\w+/=]+$/)
    expect(each).not.toContain('ada')
    expect(await codec.decrypt(each)).toBe(TEXT)
  }
  expect(await codec.decrypt(await codec.encrypt('x'.repeat(200_000)))).toHaveLength(200_000)
})

it('aesGcm seals with the first key, and opens with any key', async () => {
  const [before, both, after] = [aesGcm(key(1)), aesGcm(key(2), key(1)), aesGcm(key(2))]
  expect(await both.decrypt(await before.encrypt(TEXT))).toBe(TEXT)
  expect(await after.decrypt(await both.encrypt(TEXT))).toBe(TEXT)
  await expect(before.decrypt(await both.encrypt(TEXT))).rejects.toThrow(
    'No key of aesGcm decrypts the data. Add the key that encrypted it.',
  )
})

it('aesGcm opens no text that was changed, truncated or never sealed', async () => {
  const codec = aesGcm(key(1))
  const sealed = String(await codec.encrypt(TEXT))
  const changed = sealed.slice(0, 20) + (sealed[20] === 'A' ? 'B' : 'A') + sealed.slice(21)
  for (const text of [changed, sealed.slice(0, -4), 'AAAA', '', '%'])
    await expect(codec.decrypt(text)).rejects.toThrow()
})

it('aesGcm opens what the recipe with node:crypto sealed', async () => {
  const { createCipheriv, randomBytes } = await import('node:crypto')
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key(1), nonce)
  const sealed = [cipher.update(TEXT, 'utf8'), cipher.final()]
  const text = Buffer.concat([nonce, ...sealed, cipher.getAuthTag()]).toString('base64')
  expect(await aesGcm(key(1)).decrypt(text)).toBe(TEXT)
})

it('aesGcm keeps its key if the caller changes the array afterwards', async () => {
  const mine = key(1)
  const codec = aesGcm(mine)
  mine.fill(9)
  expect(await aesGcm(key(1)).decrypt(await codec.encrypt(TEXT))).toBe(TEXT)
})

it.each([
  ['16 bytes', new Uint8Array(16)],
  ['a text', 'k'.repeat(32)],
  ['nothing', undefined],
])('aesGcm rejects a key of %s', (_what, wrong) => {
  expect(() => aesGcm(key(1), wrong as Uint8Array)).toThrow(ConfigurationError)
  expect(() => aesGcm(key(1), wrong as Uint8Array)).toThrow('Key 2 of aesGcm')
})

it('aesGcm requires a key', () => {
  expect(() => aesGcm(...([] as unknown as [Uint8Array]))).toThrow(ConfigurationError)
})
