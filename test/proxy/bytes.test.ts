import { expect, it } from 'vitest'
import { Bytes } from '../../src/proxy/bytes.ts'

it('nothing is kept of a body that is too large, nor is memory taken for it', () => {
  const bytes = new Bytes(4)
  expect(bytes.add(new Uint8Array([1, 2]))).toBe(true)
  expect(bytes.all()).toEqual(new Uint8Array([1, 2]))
  for (let chunk = 0; chunk < 3; chunk++) expect(bytes.add(new Uint8Array(3))).toBe(false)
  expect(bytes.all().byteLength).toBe(0)
})
