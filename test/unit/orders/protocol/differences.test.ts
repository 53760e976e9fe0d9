import { describe, expect, it } from 'vitest'
import { REDACTED } from '../../../../src/http/redact.ts'
import {
  type Asked,
  contradiction,
  differences,
  type Echo,
  echoOf,
} from '../../../../src/orders/protocol/outcome.ts'
import { LEFT_OPEN, REQUEST } from '../../../support/order-context.ts'

const NAMED: Asked = LEFT_OPEN
const { externalOrderId: _reference, ...NAMELESS } = LEFT_OPEN
/** A record of an order that only `resolve()` knows. */
const ADOPTED: Asked = { ...NAMED, fingerprint: {} }

describe('the fields in which an order differs from what was sent', () => {
  const r1 = { externalOrderId: 'r1' }
  const all = { serviceId: 'x', quantity: 3, target: 'u' }
  it.each<[fields: string, proof: string | undefined, what: string, echo: Echo, asked: Asked]>([
    ['', undefined, 'nothing', {}, NAMED],
    ['', undefined, 'all of it', { ...r1, ...REQUEST }, NAMED],
    ['externalOrderId', 'externalOrderId', 'another reference', { externalOrderId: 'r2' }, NAMED],
    [
      'externalOrderId',
      'externalOrderId',
      'another reference, else equal',
      { ...REQUEST, externalOrderId: 'r2' },
      NAMED,
    ],
    [
      'externalOrderId',
      'externalOrderId',
      'a reference that looks the same',
      { externalOrderId: 'R1' },
      NAMED,
    ],
    [
      'externalOrderId serviceId quantity target',
      'externalOrderId',
      'another order',
      { externalOrderId: 'r2', ...all },
      NAMED,
    ],
    // Services trim, normalise and count down the fields of an order.
    ['serviceId quantity target', undefined, 'its reference and other fields', { ...r1, ...all }, NAMED],
    ['serviceId quantity target', 'serviceId', 'other fields', all, NAMED],
    ['quantity', 'quantity', 'another quantity', { ...REQUEST, quantity: 3 }, NAMED],
    ['quantity target', 'quantity', 'another quantity and target', { quantity: 3, target: 'u' }, NAMED],
    ['target', undefined, 'another target', { ...REQUEST, target: 'u' }, NAMED],
    ['quantity', 'quantity', 'a quantity that is another number', { quantity: 1.5 }, NAMED],
    ['', undefined, 'a reference that was never given', { externalOrderId: 'r2', ...REQUEST }, NAMELESS],
    [
      'quantity',
      'quantity',
      'a reference that was never given, and another quantity',
      { externalOrderId: 'r2', quantity: 3 },
      NAMELESS,
    ],
    ['', undefined, 'fields whose tags nobody has', all, ADOPTED],
    [
      'externalOrderId',
      'externalOrderId',
      'another reference than the adopted one',
      { externalOrderId: 'r2' },
      ADOPTED,
    ],
    ['', undefined, 'a redacted reference', { externalOrderId: `r${REDACTED}` }, NAMED],
    ['', undefined, 'a redacted field', { serviceId: `a${REDACTED}` }, NAMED],
    // A redacted reference proves nothing for the order either.
    [
      'quantity',
      'quantity',
      'a redacted reference, and another quantity',
      { externalOrderId: REDACTED, quantity: 3 },
      NAMED,
    ],
    // This client sends only values with a canonical form.
    ['serviceId', 'serviceId', 'a value that nobody can have sent', { serviceId: '\ud800' }, NAMED],
  ])(
    'the fields "%s" differ, and prove "%s" to be another order, if the service repeats %s',
    (fields, proof, _what, echo, asked) => {
      expect(differences(asked, echo).join(' ')).toBe(fields)
      expect(contradiction(asked, echo)).toBe(proof)
    },
  )
})

const NOTHING = { externalOrderId: undefined, serviceId: undefined, quantity: undefined, target: undefined }
it.each<[string, object, Echo]>([
  ['its fields', { ...REQUEST, externalOrderId: 'r1' }, { ...REQUEST, externalOrderId: 'r1' }],
  [
    'the reference of its metadata',
    { metadata: { externalOrderId: 'a' }, externalOrderId: 'b' },
    { externalOrderId: 'a' },
  ],
  [
    'its own reference, if metadata has none',
    { metadata: {}, externalOrderId: 'b' },
    { externalOrderId: 'b' },
  ],
  [
    'its own reference, if metadata is null',
    { metadata: null, externalOrderId: 'b' },
    { externalOrderId: 'b' },
  ],
  [
    'its own reference, if metadata has another type',
    { metadata: { externalOrderId: 7 }, externalOrderId: 'b' },
    { externalOrderId: 'b' },
  ],
  ['nothing of another type', { serviceId: 7, quantity: '2', target: null, externalOrderId: 7 }, {}],
  ['nothing that is inherited', Object.create({ ...REQUEST, metadata: { externalOrderId: 'r1' } }), {}],
])('an order repeats %s', (_what, order, echo) => {
  expect(echoOf(order)).toEqual({ ...NOTHING, ...echo })
})
