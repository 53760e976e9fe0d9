import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Codec } from '../../../src/options.ts'
import { isAskedAgain, isPending, type JournalRecord, publicRecord } from '../../../src/orders/record.ts'
import { decodeRow, emptyRow, encodeRecord, forgottenRow, unusableError } from '../../../src/orders/row.ts'
import type { StoredRow } from '../../../src/stores/store.ts'
import { LEFT_OPEN } from '../../support/order-context.ts'

const record: JournalRecord = {
  ...LEFT_OPEN,
  key: 'key-0',
  ambiguous: false,
  attempts: 2,
  firstSentAt: 1000,
  busyUntil: 3000,
  createdAt: 1000,
  updatedAt: 2000,
  version: 3,
  fields: { quantity: 'abcdef01' },
  body: '{"quantity":1}',
}
const { body: _body, busyUntil: _busyUntil, ...closed } = record
const order = { id: 'ord_1', status: 'pending', amount: 5, unknown: { kept: true } }
const created: JournalRecord = { ...closed, state: 'created', readable: true, order }
const rejection = { kind: 'refused', status: 402, code: 'PAYMENT_REQUIRED' } as const
const rejected: JournalRecord = { ...closed, state: 'rejected', rejection }

const reversed = (text: string): string => [...text].reverse().join('')
const mirror: Codec = { encrypt: reversed, decrypt: reversed }
const keyless = (): Promise<never> => Promise.reject(new Error('no key'))
const broken: Codec = { encrypt: keyless, decrypt: keyless }

const rowOf = (from: JournalRecord, codec?: Codec): Promise<StoredRow> =>
  encodeRecord('scope', 'id', from, codec)

/** Deeper than any engine can write. */
function endless(): unknown {
  let value: unknown = []
  for (let depth = 0; depth < 200_000; depth++) value = [value]
  return value
}

async function changed(
  change: (content: Record<string, unknown>) => unknown,
  from = record,
): Promise<StoredRow> {
  const row = await rowOf(from)
  const content: Record<string, unknown> = JSON.parse(row.data)
  change(content)
  return { ...row, data: JSON.stringify(content) }
}

describe('a stored record', () => {
  it.each([
    ['open', record],
    ['created', created],
    ['rejected', rejected],
  ])('a stored record is read back as it was written: %s', async (_state, from) => {
    expect(await decodeRow(await rowOf(from), undefined)).toEqual(from)
    expect(await decodeRow(await rowOf(from, mirror), mirror)).toEqual(from)
  })

  it('a record shows its store only what finding and pruning need', async () => {
    const facts = { version: 3, open: true, state: 'open', createdAt: 1000, updatedAt: 2000 }
    expect(await rowOf(record)).toEqual({ scope: 'scope', id: 'id', ...facts, data: expect.any(String) })
  })

  it('a record counts as open while the outcome or the order is unknown', async () => {
    const opens = await Promise.all(
      [record, created, { ...created, readable: false }, rejected].map((from) => rowOf(from)),
    )
    expect(opens.map(({ open }) => open)).toEqual([true, false, true, false])
    expect(isPending({ state: 'created', readable: false })).toBe(true)
    expect(isPending({ state: 'open', readable: true })).toBe(true)
    expect(isPending({ state: 'rejected', readable: false })).toBe(false)
  })

  it.each([
    ['open', true, record],
    ['created', false, created],
    ['created but unreadable', true, { ...created, readable: false }],
    ['rejected', false, rejected],
  ])('a record without a name that is %s is continued by the same call: %s', (_state, expected, from) => {
    expect(isAskedAgain({ ...from, slot: 'anon:same' })).toBe(expected)
    expect(isAskedAgain(from)).toBe(false)
  })

  it('a record is sealed by a codec', async () => {
    const { data } = await rowOf(record, mirror)
    for (const secret of ['r1', 'key-0', 'quantity']) expect(data).not.toContain(secret)
  })

  it('a record is readable after a codec was introduced, but not after it was removed', async () => {
    expect(await decodeRow(await rowOf(record), mirror)).toEqual(record)
    expect(await decodeRow(await rowOf(record, mirror), undefined)).toBe('corrupt')
  })

  it('a record is unusable while the codec fails, and cannot be written then', async () => {
    expect(await decodeRow(await rowOf(record, mirror), broken)).toBe('corrupt')
    await expect(rowOf(record, broken)).rejects.toThrow('no key')
  })

  it('a record keeps fields that a newer package added to the same layout', async () => {
    const row = await changed((content) => Reflect.set(content, 'region', 'eu'))
    const read = await decodeRow(row, undefined)
    expect(read).toMatchObject({ region: 'eu' })
    const again = await rowOf(read as JournalRecord)
    expect(JSON.parse(again.data)).toMatchObject({ region: 'eu', layout: 1 })
  })

  it.each(['refused', 'not_processed', 'conflict', 'cancelled', 'abandoned'] as const)(
    'a record may be closed as %s',
    async (kind) => {
      const from: JournalRecord = { ...rejected, rejection: { kind } }
      expect(await decodeRow(await rowOf(from), undefined)).toEqual(from)
    },
  )

  it.each(['aborted', 'refused'] as const)('a record may be held back as %s', async (hold) => {
    const from: JournalRecord = { ...record, hold }
    expect(await decodeRow(await rowOf(from), undefined)).toEqual(from)
  })

  it('a record keeps the documented fields of an order that is nested too deeply', async () => {
    const row = await rowOf({ ...created, order: { ...created.order, deep: endless() } })
    const { order, ...others } = created
    const { id, status, amount } = { ...order }
    expect(await decodeRow(row, undefined)).toEqual({ ...others, order: { id, status, amount } })
  })

  it('a record is not written if another part of it cannot be', async () => {
    const tags: JournalRecord['fields'] = Object.assign({}, record.fields, { deep: endless() })
    await expect(rowOf({ ...record, fields: tags })).rejects.toThrow(RangeError)
  })

  it('a record of a newer layout is not changed', async () => {
    const row = await changed((content) => {
      content['layout'] = 2
      delete content['slot']
    })
    expect(await decodeRow(row, undefined)).toBe('newer_version')
  })

  it('a forgotten record keeps its version', async () => {
    const row = forgottenRow(await rowOf(created), 5_000)
    expect(row).toMatchObject({ version: 4, open: false, state: 'rejected', updatedAt: 5_000 })
    expect(row.data).not.toContain('ord_1')
    expect(await decodeRow(row, mirror)).toBe('forgotten')
  })
})

describe('a row without a record', () => {
  it('a row without a record is the first version of a closed, empty record', async () => {
    const row = emptyRow('s', 'id', 7)
    const closedRow = { version: 1, open: false, state: 'rejected', data: 'forgotten' }
    expect(row).toEqual({ scope: 's', id: 'id', createdAt: 7, updatedAt: 7, ...closedRow })
    expect(await decodeRow(row, mirror)).toBe('forgotten')
  })
})

describe('a damaged record', () => {
  const texts = ['', 'null', '[]', '7', '"text"', '{', 'sealed:x', '\u0000']
  const layouts = ['{"layout":1}', '{"layout":"1"}', '{"layout":"2"}', '{"layout":-1}']
  it.each([...texts, ...layouts])('a damaged record is detected: %j', async (data) => {
    expect(await decodeRow({ ...(await rowOf(record)), data }, undefined)).toBe('corrupt')
  })

  const names = 'slot key keyOrigin generation state ambiguous attempts fingerprint fields body apiKeyTag'
  const required = `${names} claim readable refused foreign layout`.split(' ')
  it.each(required)('a damaged record is detected by its missing %s', async (field) => {
    const row = await changed((content) => Reflect.deleteProperty(content, field))
    expect(await decodeRow(row, undefined)).toBe('corrupt')
  })

  it.each<[string, unknown]>([
    ['slot', 7],
    ['key', null],
    ['keyOrigin', 'stolen'],
    ['generation', -1],
    ['generation', 0.5],
    ['state', 'paid'],
    ['ambiguous', 'no'],
    ['attempts', '2'],
    ['fields', null],
    ['fields', []],
    ['fields', { quantity: 1 }],
    ['externalOrderId', 5],
    ['firstSentAt', 'yesterday'],
    ['busyUntil', null],
    ['order', 'ord_1'],
    ['rejection', 'refused'],
    ['rejection', null],
    ['rejection', { kind: 'unknown' }],
    ['rejection', { kind: 'refused', status: '402' }],
    ['hold', 'forever'],
    ['fields', { quantity: 1, target: 'abcdef01' }],
    ['first', 7],
    ['first', null],
    ['first', { sentAt: 'yesterday', refused: true }],
    ['first', { sentAt: 1000, refused: 'yes' }],
    ['first', { sentAt: 1000, refused: true, rejection: 'refused' }],
    ['body', 5],
  ])('a damaged record is detected by a %s that is %j', async (field, value) => {
    const row = await changed((content) => Reflect.set(content, field, value))
    expect(await decodeRow(row, undefined)).toBe('corrupt')
  })

  it('a record that is closed without a reason is damaged', async () => {
    const row = await changed((content) => Reflect.deleteProperty(content, 'rejection'), rejected)
    expect(await decodeRow(row, undefined)).toBe('corrupt')
  })

  it('a record whose text and row have different states is damaged', async () => {
    expect(await decodeRow({ ...(await rowOf(record)), state: 'rejected' }, undefined)).toBe('corrupt')
  })

  it('a record with one changed character is either unchanged or detected as damaged', async () => {
    const row = await rowOf(record)
    const flips = fc.tuple(fc.nat(row.data.length - 1), fc.string({ maxLength: 2 }))
    await fc.assert(
      fc.asyncProperty(flips, async ([at, by]) => {
        const data = row.data.slice(0, at) + by + row.data.slice(at + 1)
        const read = await decodeRow({ ...row, data }, undefined)
        if (typeof read === 'string') expect(['corrupt', 'newer_version']).toContain(read)
        else expect(typeof read.body).toBe('string')
      }),
      { numRuns: 2000 },
    )
  })
})

describe('what is told of a record', () => {
  it('the public record contains documented fields, and no internals', () => {
    expect(publicRecord(record)).toEqual({
      slot: 'ref:r1',
      key: 'key-0',
      generation: 0,
      state: 'open',
      ambiguous: false,
      externalOrderId: 'r1',
      request: JSON.parse(record.body ?? ''),
      attempts: 2,
      firstSentAt: 1000,
      busyUntil: 3000,
      createdAt: 1000,
      version: 3,
    })
    expect(publicRecord(created).order).toEqual(created.order)
    expect(publicRecord(rejected).rejection).toEqual(rejected.rejection)
  })

  it.each([
    [
      'corrupt',
      'The stored record of an order cannot be read (damaged, or written with another codec).',
      'Restore the row or the codec. Before anyone places the order again, look it up at the service.',
    ],
    [
      'newer_version',
      'The stored record of an order was written by a newer version of this package.',
      'Update this package in all processes that share the store.',
    ],
    [
      'unanswered',
      'The codec did not decrypt the stored record of an order in time.',
      'Repeat this call unchanged once the codec responds.',
    ],
  ] as const)('the public form of an unusable record (%s) reports a possible charge', (why, what, next) => {
    const error = unusableError(why, 'key-0')
    expect([error.code, error.charged, error.idempotencyKey]).toEqual(['store', 'unknown', 'key-0'])
    expect(error.message).toBe(
      `${what} This call did not send that order; an earlier call may have charged the wallet. ${next}`,
    )
  })
})
