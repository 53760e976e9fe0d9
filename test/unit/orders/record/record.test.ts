import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { rowIdOf } from '../../../../src/identity/keys.ts'
import type { Codec } from '../../../../src/options.ts'
import {
  checkedCodec,
  decodeRow,
  emptyRow,
  encodeRecord,
  type JournalRecord,
  orderOf,
} from '../../../../src/orders/record/record.ts'
import type { StoredRow } from '../../../../src/stores/store.ts'
import { uuidV5 } from '../../../../src/uuid-v5.ts'
import { effort } from '../../../support/effort.ts'
import { derivedFor, LEFT_OPEN, ORDER } from '../../../support/order-context.ts'

const record: JournalRecord = {
  ...LEFT_OPEN,
  attempts: 2,
  firstSentAt: 1000,
  busyUntil: 3000,
  createdAt: 1000,
  updatedAt: 2000,
  version: 3,
}
const BODY = record.body ?? ''
const { body: _body, busyUntil: _busyUntil, ...closed } = record
const order = { ...ORDER, unknown: { kept: true } }
const created: JournalRecord = { ...closed, state: 'created', order }
const rejection = { kind: 'refused', status: 402, code: 'PAYMENT_REQUIRED' } as const
const rejected: JournalRecord = { ...closed, state: 'rejected', rejection }

const later = { ...record, generation: 2, highest: 4, key: derivedFor('r1', 2), firstKeySentAt: 0 }

const reversed = (text: string): string => [...text].reverse().join('')
const mirror: Codec = { encrypt: reversed, decrypt: reversed }
const keyless = (): Promise<never> => Promise.reject(new Error('no key'))
const broken: Codec = { encrypt: keyless, decrypt: keyless }

const rowOf = async (of: JournalRecord, codec?: Codec): Promise<StoredRow> =>
  await encodeRecord('scope', rowIdOf(uuidV5, of.slot), of, codec)
const read = (row: StoredRow, codec?: Codec) => decodeRow(row, codec)

/** Deeper than any engine can write. */
function endless(): unknown {
  let value: unknown = []
  for (let depth = 0; depth < 200_000; depth++) value = [value]
  return value
}

/** The row of the record with other fields. Undefined fields are removed. */
async function changed(fields: object): Promise<StoredRow> {
  const row = await rowOf(record)
  return { ...row, data: JSON.stringify({ ...JSON.parse(row.data), ...fields }) }
}

describe('a stored record', () => {
  it.each([
    ['open', true, record],
    ['created', false, created],
    ['created but unreadable', true, { ...record, state: 'created' as const }],
    ['rejected', false, rejected],
    ['held', true, { ...record, hold: 'conflict' as const }],
    ['closed by a person', false, { ...rejected, rejection: { kind: 'abandoned' as const } }],
    ['at a later key', true, later],
    ['claimed by several calls', true, { ...record, othersUntil: 9000 }],
  ])('a record that is %s is read back as it was written', async (_state, open, from) => {
    const row = await rowOf(from)
    expect(row).toMatchObject({ open, state: from.state, version: 3, createdAt: 1000, updatedAt: 2000 })
    expect(await read(row)).toEqual(from)
    expect(await read(await rowOf(from, mirror), mirror)).toEqual(from)
  })

  it('a row shows its store only what finding and pruning need', async () => {
    const { data, ...shown } = await rowOf(record, mirror)
    const facts = { version: 3, open: true, state: 'open', createdAt: 1000, updatedAt: 2000 }
    expect(shown).toEqual({ scope: 'scope', id: rowIdOf(uuidV5, 'ref:r1'), ...facts })
    for (const secret of ['r1', record.key, 'quantity']) expect(data).not.toContain(secret)
  })

  it('a record is readable after a codec was introduced, but not after it was removed or fails', async () => {
    expect(await read(await rowOf(record), mirror)).toEqual(record)
    expect(await read(await rowOf(record, mirror))).toBe('corrupt')
    expect(await read(await rowOf(record, mirror), broken)).toBe('corrupt')
    await expect(rowOf(record, broken)).rejects.toThrow('no key')
  })

  it('a record keeps fields that a newer package added to the same layout', async () => {
    const later = await read(await rowOf(Object.assign({ region: 'eu' }, record)))
    expect(later).toMatchObject({ region: 'eu' })
    expect(JSON.parse((await rowOf(later as JournalRecord)).data)).toMatchObject({ region: 'eu', layout: 1 })
  })

  it('a record keeps the main fields of an order that is nested too deeply, and of nothing else', async () => {
    const row = await rowOf({ ...created, order: Object.assign({ ...order }, { deep: endless() }) })
    const { id, status, amount } = ORDER
    expect(await read(row)).toEqual({ ...created, order: { id, status, amount } })
    const fingerprint = Object.assign({}, record.fingerprint, { deep: endless() })
    await expect(rowOf({ ...record, fingerprint })).rejects.toThrow(RangeError)
  })

  it('the text of a row does not repeat its columns', async () => {
    const { data } = await encodeRecord('scope', 'id', record, undefined)
    expect(Object.keys(JSON.parse(data))).not.toEqual(expect.arrayContaining(['version']))
    expect(data).not.toMatch(/createdAt|updatedAt/)
  })

  it('a record of a newer layout is left alone', async () => {
    expect(await read(await changed({ layout: 2, slot: undefined }))).toBe('newer_version')
  })

  it('an empty row continues the versions of the row that it replaces', async () => {
    const row = await rowOf(created)
    const emptied = emptyRow('scope', row.id, 5000, row)
    const facts = { version: 4, open: false, state: 'rejected', createdAt: 1000, updatedAt: 5000 }
    expect(emptied).toMatchObject(facts)
    expect(emptied.data).not.toContain(order.id)
    expect(await read(emptied, mirror)).toBe('forgotten')
    expect(emptyRow('scope', row.id, 5000)).toEqual({ ...emptied, version: 5001, createdAt: 5000 })
  })
})

it('only a created record has an order, with its status and amount', () => {
  expect(orderOf(created)).toEqual(order)
  for (const part of [{ status: 's' }, { amount: 1 }])
    expect(orderOf({ ...created, order: { id: 'o1', ...part } })).toBeUndefined()
  expect(orderOf({ ...created, state: 'open' })).toBeUndefined()
})

describe('a damaged record', () => {
  it.each<[string, unknown]>([
    ...['slot', 'key', 'body', 'sum', 'layout'].map((field): [string, unknown] => [field, undefined]),
    ['key', 'another'],
    ['attempts', 3],
    ['externalOrderId', 'r2'],
    ['body', BODY.replace('"quantity":1', '"quantity":9000')],
    ['hold', 'forever'],
    ['layout', '1'],
    ['layout', 0],
  ])('a record is damaged if its %s becomes %j', async (field, value) => {
    expect(await read(await changed({ [field]: value }))).toBe('corrupt')
  })

  it.each(['', '{', '{}', 'null', '7', '[]', '"forgotten"'])(
    'a row is damaged if its data is %j',
    async (data) => {
      expect(await read({ ...(await rowOf(record)), data })).toBe('corrupt')
    },
  )

  it('a record is damaged in another row, another scope, and beside another state', async () => {
    const row = await rowOf(record)
    const changes = [{ id: rowIdOf(uuidV5, 'ref:r2') }, { scope: 'other' }, { state: 'rejected' } as const]
    for (const change of changes) expect(await read({ ...row, ...change })).toBe('corrupt')
  })

  it('a record with one changed character is damaged', async () => {
    const row = await rowOf(record)
    const flips = fc.tuple(fc.nat(row.data.length - 1), fc.string({ maxLength: 2 }))
    await fc.assert(
      fc.asyncProperty(flips, async ([at, by]) => {
        const data = row.data.slice(0, at) + by + row.data.slice(at + 1)
        const decoded = await read({ ...row, data })
        if (data === row.data) expect(decoded).toEqual(record)
        else expect(['corrupt', 'newer_version']).toContain(decoded)
      }),
      { numRuns: effort(500, 5000) },
    )
  })
})

describe('the first string that a codec encrypts', () => {
  it.each<[string, Codec]>([
    ['another string', { encrypt: reversed, decrypt: (text) => text }],
    ['nothing', { encrypt: reversed, decrypt: () => undefined as unknown as string }],
    ['an error', { encrypt: reversed, decrypt: keyless }],
  ])('encryption fails if decryption returns %s', async (_what, codec) => {
    const error = await Promise.resolve(checkedCodec(codec).encrypt('abc')).catch((thrown: unknown) => thrown)
    const message = 'codec.decrypt() did not return the string that codec.encrypt() was given'
    expect(error).toEqual(new TypeError(message))
  })

  it('a codec that cannot decrypt at first is tried again', async () => {
    let works = false
    const codec = checkedCodec({ encrypt: reversed, decrypt: (text) => (works ? reversed(text) : '') })
    await expect(codec.encrypt('abc')).rejects.toThrow('codec.decrypt()')
    works = true
    expect(await codec.encrypt('abc')).toBe('cba')
    works = false
    expect(await codec.encrypt('abcd')).toBe('dcba')
    expect(await codec.decrypt('x')).toBe('')
  })
})
