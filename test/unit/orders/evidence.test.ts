import { describe, expect, it } from 'vitest'
import { REDACTED } from '../../../src/http/redact.ts'
import {
  type Asked,
  contradiction,
  differences,
  type Echo,
  type EchoedField,
  echoOf,
  judgeListed,
  requestOf,
  sourceSystemOf,
} from '../../../src/orders/evidence.ts'
import { fieldTags } from '../../../src/orders/identity.ts'
import { platformRuntime } from '../../../src/runtime.ts'

const { deriveId } = platformRuntime
const request = { serviceId: 's', target: 't', quantity: 2 }
const fields = fieldTags(deriveId, 'k', request)
const NAMELESS: Asked = { key: 'k', fields, body: JSON.stringify(request) }
const NAMED: Asked = { ...NAMELESS, externalOrderId: 'r1' }
const BODILESS: Asked = { externalOrderId: 'r1', key: 'k', fields }
const BARE: Asked = { externalOrderId: 'r1', key: 'k', fields: {} }

describe('the fields in which an order differs from its request', () => {
  it.each<[differs: readonly EchoedField[], echo: Echo, what: string, asked: Asked]>([
    [['externalOrderId'], { externalOrderId: 'r2' }, 'a reference', NAMED],
    [['quantity'], { externalOrderId: 'r1', quantity: 3 }, 'a reference', NAMED],
    [['serviceId', 'target', 'quantity'], { serviceId: 'x', target: 'u', quantity: 3 }, 'a body', NAMED],
    [[], { externalOrderId: REDACTED, serviceId: `a${REDACTED}` }, 'a body', NAMED],
    [[], { serviceId: 's', target: 't', quantity: 2 }, 'a body', NAMED],
    [[], { serviceId: 's', target: 't', quantity: 2 }, 'no body', BODILESS],
    [['target', 'quantity'], { serviceId: 's', target: 'u', quantity: 3 }, 'no body', BODILESS],
    [[], { serviceId: `a${REDACTED}` }, 'no body', BODILESS],
    [[], { target: 'u', quantity: 3 }, 'no tags', BARE],
    // This value has no canonical form, so this client cannot have sent it.
    [['serviceId'], { serviceId: '\ud800' }, 'no body', BODILESS],
    [[], {}, 'a body', NAMED],
  ])('the fields are %j for %j if the record has %s', (differs, echo, _what, asked) => {
    expect(differences(deriveId, asked, echo)).toEqual(differs)
  })

  it('an error of the runtime is not taken for a difference', () => {
    const broken = (): never => {
      throw new Error('no hashes')
    }
    expect(() => differences(broken, BODILESS, { quantity: 2 })).toThrow('no hashes')
  })
})

describe('what a difference proves', () => {
  it.each<[field: string | undefined, echo: Echo, asked: Asked]>([
    ['metadata.externalOrderId', { externalOrderId: 'r2' }, NAMED],
    // An equal reference proves whose order it is: services trim, normalise and count down.
    [undefined, { externalOrderId: 'r1', serviceId: 'x', quantity: 3 }, NAMED],
    ['quantity', { quantity: 3 }, NAMED],
    ['serviceId', { serviceId: 'x', quantity: 3 }, NAMELESS],
    [undefined, { target: 'u' }, NAMELESS],
  ])('a response to our own key is contradicted in %s by %j', (field, echo, asked) => {
    expect(contradiction(deriveId, asked, echo)).toBe(field)
  })

  it.each<[is: string, echo: Echo, asked: Asked]>([
    ['ours', { externalOrderId: 'r1', serviceId: 's', target: 't', quantity: 2 }, NAMED],
    ['ours', { quantity: 2 }, NAMED],
    ['anothers', { externalOrderId: 'r2' }, NAMED],
    ['doubtful', { externalOrderId: 'r1', target: 'u' }, NAMED],
    ['doubtful', { externalOrderId: 'r1', quantity: 3 }, BODILESS],
    ['anothers', { quantity: 3 }, NAMED],
    ['anothers', { externalOrderId: 'r1', quantity: 3 }, NAMELESS],
  ])('a listed order is %s if it shows %j', (is, echo, asked) => {
    expect(judgeListed(deriveId, asked, echo).is).toBe(is)
  })
})

it('only own fields of the expected type are compared', () => {
  const nothing = {
    externalOrderId: undefined,
    serviceId: undefined,
    quantity: undefined,
    target: undefined,
    sourceSystem: undefined,
  }
  expect(echoOf({ ...request, externalOrderId: 'r1' })).toEqual({ ...request, externalOrderId: 'r1' })
  expect(echoOf({ serviceId: 7, quantity: '2', target: null })).toEqual(nothing)
  expect(echoOf(Object.create(request))).toEqual(nothing)
})

it.each([
  ['a', { sourceSystem: 'a', metadata: { sourceSystem: 'b' } }],
  ['b', { sourceSystem: '', metadata: { sourceSystem: 'b' } }],
  [undefined, { sourceSystem: '' }],
  [undefined, { sourceSystem: 7 }],
])('the source system is %s for %j', (system, body) => {
  expect(sourceSystemOf({ ...NAMED, body: JSON.stringify(body) })).toBe(system)
})

it.each([undefined, '{', '"text"'])('a body that is no request has no fields: %s', (body) => {
  expect(requestOf(body === undefined ? {} : { body })).toEqual({})
})
