import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { RecordIndex } from '../../../../src/orders/commands/record-index.ts'
import { collect } from '../../../support/heap.ts'

const held = (): number => {
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** The ids of the rows that may have a name. */
const rowsOf = (index: RecordIndex, name: string): string[] =>
  [...index.named(name)].map((position) => index.rowIdOf(position))

it('an index finds each record by its name, and those left over', () => {
  const index = new RecordIndex()
  const ids = Array.from({ length: 3000 }, () => randomUUID())
  for (const [number, id] of ids.entries()) index.add(`reference r${number}`, id, 0)
  index.seal()
  for (const [number, id] of ids.entries()) expect(rowsOf(index, `reference r${number}`)).toEqual([id])
  expect(rowsOf(index, 'reference r3000')).toEqual([])
  for (const position of index.named('reference r1')) index.mark(position, 'matched')
  expect([...index.unmarked()]).toHaveLength(2999)
})

it('an index finds all records of one name, and a repeated row only as it was last', () => {
  const index = new RecordIndex()
  const [first, second, repeated] = [randomUUID(), randomUUID(), randomUUID()]
  index.add('id o1', first, 0)
  index.add('reference r1', repeated, 0)
  index.add('id o1', second, 0)
  index.add('id o2', repeated, 0)
  index.seal()
  expect(rowsOf(index, 'id o1')).toEqual([first, second])
  expect(rowsOf(index, 'reference r1')).toEqual([])
  expect(rowsOf(index, 'id o2')).toEqual([repeated])
  expect([...index.unmarked()]).toHaveLength(3)
})

function bytesPerRecord(records: number): number {
  const before = held()
  const index = new RecordIndex()
  for (let number = 0; number < records; number++)
    index.add(`reference order-of-a-shop-${number}`, randomUUID(), 0)
  index.seal()
  const bytes = (held() - before) / records
  expect([...index.named('reference order-of-a-shop-7')]).toEqual([7])
  return bytes
}

it('an index keeps at most 64 bytes a record', () => {
  // Other tests of the same process may allocate meanwhile, which only adds to a measurement.
  let least = Number.POSITIVE_INFINITY
  for (let turn = 0; turn < 4 && least >= 64; turn++) least = Math.min(least, bytesPerRecord(20_000))
  expect(least).toBeLessThan(64)
})
