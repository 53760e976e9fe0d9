import { describe, expect, it } from 'vitest'
import type { CreateOptions } from '../../../src/call-options.ts'
import { misnamedFields } from '../../../src/orders/intent.ts'
import { throwing } from '../../support/throwing.ts'

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
    ...[
      'budget',
      'externalId',
      'externalReference',
      'customerOrderId',
      'idempotent',
      'priority',
      'constructor',
      '',
    ],
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
