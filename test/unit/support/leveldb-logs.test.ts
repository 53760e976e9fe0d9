import { expect, it } from 'vitest'
import { completeSize } from '../../browser/support/leveldb-logs.ts'

const [WHOLE, FIRST, MIDDLE, LAST] = [1, 2, 3, 4] as const
const BLOCK = 32_768

function record(type: number, length: number): Buffer {
  const bytes = Buffer.alloc(7 + length, 0x55)
  bytes.writeUInt16LE(length, 4)
  bytes[6] = type
  return bytes
}

const one = record(WHOLE, 100)
const long = [record(FIRST, BLOCK - 7), record(MIDDLE, BLOCK - 7), record(LAST, 10)] as const
const sizeOf = (...parts: readonly Buffer[]): number => completeSize(Buffer.concat(parts))

it('a log of whole records is complete', () => {
  expect(sizeOf()).toBe(0)
  expect(sizeOf(one, one)).toBe(214)
  expect(sizeOf(...long)).toBe(2 * BLOCK + 17)
})

it.each([
  ['a part of a header', one.subarray(0, 3)],
  ['a header without content', one.subarray(0, 7)],
  ['a part of the content', one.subarray(0, 60)],
])('an incomplete record does not count: %s', (_what, part) => {
  expect(sizeOf(one, part)).toBe(107)
})

it('a record that lacks its last part does not count', () => {
  expect(sizeOf(long[0])).toBe(0)
  expect(sizeOf(long[0], long[1])).toBe(0)
  expect(sizeOf(long[0], long[1], long[2].subarray(0, 12))).toBe(0)
})

it('a record that does not fit begins in the next block', () => {
  const nearly = record(WHOLE, BLOCK - 7 - 5)
  const filler = Buffer.alloc(5)
  expect(sizeOf(nearly, filler, one)).toBe(BLOCK + 107)
  expect(sizeOf(nearly, filler, one.subarray(0, 50))).toBe(BLOCK - 5)
})
