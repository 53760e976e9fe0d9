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

  it('productId may be a field of an order that names its service, and is not one of any other order', () => {
    expect(found({ ...order, productId: 1 })).toEqual([])
    expect(found({ target: 't', productId: 1 })).toEqual(['productId → serviceId'])
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

  /** The names that one letter changed, added, removed or swapped makes of another: slow, and obvious. */
  const edits = (name: string, letters: string): string[] =>
    [...`${name} `].flatMap((_letter, at) => {
      const [before, first = '', second = '', rest] = [
        name.slice(0, at),
        name[at],
        name[at + 1],
        name.slice(at + 2),
      ]
      const written = [...letters].flatMap((letter) => [letter + first + second, letter + second])
      return [second, second + first, ...written].map((middle) => before + middle + rest)
    })
  const ALL = 'abcdefghijklmnopqrstuvwxyz0123456789'
  const MEANT = NAMES.map((known) => {
    const name = folded(known)
    return { known, forms: new Set([name, ...(name.length >= 8 ? edits(name, ALL) : [])]) }
  })
  const isMeant = (name: string, only?: string): boolean =>
    MEANT.some(({ known, forms }) => (only ?? known) === known && forms.has(folded(name)))

  const picks = fc.array(fc.noBias(fc.nat()), { maxLength: 2 })
  const nearly = fc.tuple(fc.constantFrom(...NAMES), picks).map(([known, positions]) =>
    positions.reduce((name, position) => {
      const edited = edits(name, 'abcdeinorstxIQ_-7')
      return edited[position % edited.length] ?? name
    }, known),
  )

  it('a name is refused exactly if one edit makes it a known name, also when it was seen before', () => {
    fc.assert(
      fc.property(nearly, (name) => {
        const top = !['serviceId', 'target', 'quantity', 'metadata'].includes(name)
        const expected = [
          top && isMeant(name),
          name !== 'externalOrderId' && isMeant(name, 'externalOrderId'),
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
