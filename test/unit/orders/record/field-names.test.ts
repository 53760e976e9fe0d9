import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CreateOptions } from '../../../../src/call-options.ts'
import { misnamedFields } from '../../../../src/orders/record/intent.ts'
import { throwing } from '../../../support/calls.ts'
import { effort } from '../../../support/effort.ts'

const order = { serviceId: 's', target: 't', quantity: 1, metadata: { externalOrderId: 'r1' } }

/** Paths and the names in the message. `options` means an option of the call. */
const found = (fields: object): string[] =>
  misnamedFields(fields).map(({ path, message }) => {
    const [, option, field] = /^is a call option: pass (\w+) in|^must be named (\S+)$/.exec(message) ?? []
    return `${path} → ${option === undefined ? field : `options.${option}`}`
  })

/** A new option of a call does not compile until it is listed here. */
const OPTIONS: Readonly<Record<keyof CreateOptions, true>> = {
  signal: true,
  timeout: true,
  totalTimeout: true,
  maxRetries: true,
  headers: true,
  idempotencyKey: true,
  allowDuplicate: true,
}

describe('a field of an order that can only be meant as something else', () => {
  it.each(Object.keys(OPTIONS))('a misplaced field is reported as the option %s', (name) => {
    expect(found({ ...order, [name]: undefined })).toEqual([`${name} → options.${name}`])
  })

  it.each([
    ['metdata', 'metadata'],
    ['meta_data', 'metadata'],
    ['Metadata', 'metadata'],
    ['metadat', 'metadata'],
    ['metadtaa', 'metadata'],
    ['serviceID', 'serviceId'],
    ['service_id', 'serviceId'],
    ['servceId', 'serviceId'],
    ['Target', 'target'],
    ['quantitiy', 'quantity'],
    ['quanity', 'quantity'],
    ['qauntity', 'quantity'],
    ['externalOrderId', 'metadata.externalOrderId'],
    ['external_order_id', 'metadata.externalOrderId'],
    ['idempotency-key', 'options.idempotencyKey'],
    ['idempotancyKey', 'options.idempotencyKey'],
    ['allowDuplicates', 'options.allowDuplicate'],
    ['max_retries', 'options.maxRetries'],
  ])('a misplaced field is reported as %s for %s', (name, place) => {
    expect(found({ ...order, [name]: 1 })).toEqual([`${name} → ${place}`])
  })

  it.each(['externalOrderID', 'external_order_id', 'externalOrderid', 'exernalOrderId', 'externalOrdreId'])(
    'a misplaced field is reported as %s in metadata',
    (name) => {
      expect(found({ ...order, metadata: { [name]: 'r1' } })).toEqual([
        `metadata.${name} → metadata.externalOrderId`,
      ])
    },
  )

  it('an error names every misplaced field', () => {
    expect(found({ metdata: 1, signal: 2, metadata: { externalOrderID: 3 } })).toEqual([
      'metdata → metadata',
      'signal → options.signal',
      'metadata.externalOrderID → metadata.externalOrderId',
    ])
  })
})

describe('a field of an order that may well exist', () => {
  it.each([
    ...['sourceSystem', 'currency', 'note', 'notes', 'services', 'serviceName', 'targets', 'targetId'],
    ...['amount', 'data', 'meta', 'header', 'readers', 'signals', 'timeouts', 'width', 'deviceId', 'orderId'],
    ...['budget', 'externalId', 'externalReference', 'customerOrderId', 'idempotent', 'priority'],
    ...['constructor', ''],
  ])('an unknown field that may exist is sent unchanged: %s', (name) => {
    expect(found({ ...order, [name]: 1 })).toEqual([])
    expect(found({ ...order, metadata: { externalOrderId: 'r1', [name]: 1 } })).toEqual([])
  })

  it('metadata may contain the name of an option or another field', () => {
    const names = [...Object.keys(OPTIONS), 'serviceId', 'target', 'quantity', 'metadata', 'Quantity']
    const metadata = Object.fromEntries(names.map((name) => [name, 1]))
    expect(found({ ...order, metadata })).toEqual([])
  })
})

it('misplaced fields are found without reading a value', () => {
  const live = (name: string): object =>
    Object.defineProperty({}, name, { enumerable: true, get: throwing('was read') })
  expect(found(live('metdata'))).toEqual(['metdata → metadata'])
  expect(found(live('metadata'))).toEqual([])
})

it.each([undefined, null, 1, 'text', []])('misplaced fields are not searched for in %j', (request) => {
  expect(misnamedFields(request)).toEqual([])
})

describe('a name that is nearly a known one', () => {
  const NAMES = ['serviceId', 'target', 'quantity', 'metadata', 'externalOrderId', ...Object.keys(OPTIONS)]
  const folded = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, '')

  /** The number of letters to change, add, remove or swap: the textbook's table, and slow. */
  function distance(a: string, b: string): number {
    const table = Array.from({ length: a.length + 1 }, (_, row) =>
      Array.from({ length: b.length + 1 }, (_, column) => (row === 0 ? column : column === 0 ? row : 0)),
    )
    const at = (row: number, column: number): number => table[row]?.[column] ?? Number.POSITIVE_INFINITY
    for (let i = 1; i <= a.length; i++)
      for (let j = 1; j <= b.length; j++) {
        const changed = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
        const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
        const swapped = isSwap ? at(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY
        table[i]?.splice(j, 1, Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, changed, swapped))
      }
    return at(a.length, b.length)
  }

  const means = (name: string, known: string): boolean => {
    const [a, b] = [folded(name), folded(known)]
    return a === b || (b.length >= 8 && distance(a, b) <= 1)
  }

  const letters = fc.constantFrom(...'abcdeinorstxIQ_-7')
  const edit = fc.tuple(fc.constantFrom('change', 'add', 'remove', 'swap'), fc.nat(16), letters)
  const nearly = fc
    .tuple(fc.constantFrom(...NAMES), fc.array(edit, { maxLength: 2 }))
    .map(([known, edits]) => {
      const name = [...known]
      for (const [how, at, letter] of edits) {
        if (how === 'change') name.splice(at, 1, letter)
        if (how === 'add') name.splice(at, 0, letter)
        if (how === 'remove') name.splice(at, 1)
        if (how === 'swap') name.splice(at, 2, ...name.slice(at, at + 2).reverse())
      }
      return name.join('')
    })

  it('a name is refused exactly if one edit makes it a known name, also when it was seen before', () => {
    fc.assert(
      fc.property(nearly, (name) => {
        const top = !['serviceId', 'target', 'quantity', 'metadata'].includes(name)
        const expected = [
          top && NAMES.some((known) => means(name, known)),
          name !== 'externalOrderId' && means(name, 'externalOrderId'),
        ]
        for (const _time of ['first', 'second']) {
          expect(found({ [name]: 1 }).length > 0).toBe(expected[0])
          expect(found({ metadata: { [name]: 1 } }).length > 0).toBe(expected[1])
        }
      }),
      { numRuns: effort(500, 50_000) },
    )
  })

  it('a name is still refused after more harmless names than are remembered', () => {
    for (let count = 0; count < 2500; count++) expect(found({ [`note${count}`]: 1 })).toEqual([])
    expect(found({ metdata: 1 })).toEqual(['metdata → metadata'])
  })

  it('a name of a million letters is decided in no time', () => {
    const long = `metadat${'a'.repeat(1_000_000)}`
    const before = performance.now()
    expect(found({ [long]: 1, metadata: { [long]: 1 } })).toEqual([])
    expect(performance.now() - before).toBeLessThan(1000)
  })
})
