import { describe, expect, it } from 'vitest'
import { REDACTED } from '../../../../src/http/redact.ts'
import {
  type Asked,
  contradiction,
  differences,
  differencesFound,
  type Echo,
  echoOf,
} from '../../../../src/orders/protocol/outcome.ts'
import { LEFT_OPEN, REQUEST } from '../../../support/order-context.ts'

const NAMED: Asked = LEFT_OPEN
const { externalOrderId: _reference, ...NAMELESS } = LEFT_OPEN
/** A record of an order that only `resolve()` knows. */
const ADOPTED: Asked = { ...NAMED, fingerprint: {} }

describe('the fields in which an order differs from what was sent', () => {
  const R1 = { externalOrderId: 'r1' }
  const R2 = { externalOrderId: 'r2' }
  const all = { serviceId: 'x', quantity: 3, target: 'u' }
  const byReference = (echo: Echo): [Echo, 'externalOrderId'] => [echo, 'externalOrderId']
  it.each<[what: string, fields: string, echo: Echo, proof?: string | undefined, asked?: Asked]>([
    ['nothing', '', {}],
    ['all of it', '', { ...R1, ...REQUEST }],
    ['another reference', 'externalOrderId', ...byReference(R2)],
    ['another reference, else equal', 'externalOrderId', ...byReference({ ...REQUEST, ...R2 })],
    ['a reference that looks the same', 'externalOrderId', ...byReference({ externalOrderId: 'R1' })],
    ['another order', 'externalOrderId serviceId quantity target', ...byReference({ ...R2, ...all })],
    // Services trim, normalise and count down the fields of an order.
    ['its reference and other fields', 'serviceId quantity target', { ...R1, ...all }],
    ['other fields', 'serviceId quantity target', all, 'serviceId'],
    ['another quantity', 'quantity', { ...REQUEST, quantity: 3 }, 'quantity'],
    ['another quantity and target', 'quantity target', { quantity: 3, target: 'u' }, 'quantity'],
    ['another target', 'target', { ...REQUEST, target: 'u' }],
    ['a quantity that is another number', 'quantity', { quantity: 1.5 }, 'quantity'],
    ['a reference that was never given', '', { ...R2, ...REQUEST }, undefined, NAMELESS],
    ['such a reference, and another quantity', 'quantity', { ...R2, quantity: 3 }, 'quantity', NAMELESS],
    ['fields whose tags nobody has', '', all, undefined, ADOPTED],
    ['another reference than the adopted one', 'externalOrderId', ...byReference(R2), ADOPTED],
    ['a redacted reference', '', { externalOrderId: `r${REDACTED}` }],
    ['a redacted field', '', { serviceId: `a${REDACTED}` }],
    // A redacted reference proves nothing for the order either.
    ['that, and another quantity', 'quantity', { externalOrderId: REDACTED, quantity: 3 }, 'quantity'],
    ['a value that nobody can have sent', 'serviceId', { serviceId: '\ud800' }, 'serviceId'],
  ])('if the service repeats %s, the fields "%s" differ: %j prove "%s"', (_what, fields, ...further) => {
    const [echo, proof, asked = NAMED] = further
    expect(differences(asked, echo).join(' ')).toBe(fields)
    expect(contradiction(asked, echo)).toBe(proof)
  })
})

it.each<[string, string, string | undefined, string | undefined]>([
  ['none and shows none', '', undefined, undefined],
  ['none and shows one', '', undefined, 'erp'],
  ['one and shows none', '', 'shop', undefined],
  ['one and shows it', '', 'shop', 'shop'],
  ['one and shows another', 'sourceSystem', 'shop', 'erp'],
])('an order whose request names %s as its source system differs in "%s"', (_what, fields, named, shown) => {
  const asked = { ...NAMED, body: JSON.stringify({ ...REQUEST, ...(named && { sourceSystem: named }) }) }
  expect(differencesFound(asked, { id: 'o', sourceSystem: shown }).join(' ')).toBe(fields)
  expect(differencesFound({ ...NAMED, body: 'no JSON' }, { id: 'o', sourceSystem: shown })).toEqual([])
})

const NOTHING = { externalOrderId: undefined, serviceId: undefined, quantity: undefined, target: undefined }
const A = { externalOrderId: 'a' }
const B = { externalOrderId: 'b' }
const OTHER_TYPES = { serviceId: 7, quantity: '2', target: null, externalOrderId: 7 }
it.each<[string, object, Echo]>([
  ['its fields', { ...REQUEST, ...A }, { ...REQUEST, ...A }],
  ['the reference of its metadata', { metadata: A, ...B }, A],
  ['its own reference, if metadata has none', { metadata: {}, ...B }, B],
  ['its own reference, if metadata is null', { metadata: null, ...B }, B],
  ['its own reference, if metadata has another type', { metadata: { externalOrderId: 7 }, ...B }, B],
  ['nothing of another type', OTHER_TYPES, {}],
  ['nothing that is inherited', Object.create({ ...REQUEST, metadata: A }), {}],
])('an order repeats %s', (_what, order, echo) => {
  expect(echoOf(order)).toEqual({ ...NOTHING, ...echo })
})
