import { describe, expect, it } from 'vitest'
import { REDACTED } from '../../../src/http/redact.ts'
import {
  type Asked,
  contradiction,
  type Echo,
  echoOf,
  type FoundIn,
  hasOtherTarget,
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

describe('the field in which an order contradicts its request', () => {
  it.each<[field: string | undefined, found: FoundIn, echo: Echo, what: string, asked: Asked]>([
    ['metadata.externalOrderId', 'response', { externalOrderId: 'r2' }, 'a reference', NAMED],
    ['metadata.externalOrderId', 'list', { externalOrderId: 'r2' }, 'a reference', NAMED],
    // In a response, an equal reference proves whose order it is.
    [undefined, 'response', { externalOrderId: 'r1', quantity: 3 }, 'a reference', NAMED],
    ['quantity', 'list', { externalOrderId: 'r1', quantity: 3 }, 'a reference', NAMED],
    ['quantity', 'response', { externalOrderId: 'r1', quantity: 3 }, 'no reference', NAMELESS],
    [undefined, 'response', { externalOrderId: REDACTED, quantity: 3 }, 'a reference', NAMED],
    ['serviceId', 'response', { serviceId: 'x', quantity: 3 }, 'a body', NAMED],
    ['serviceId', 'list', { serviceId: 'x', quantity: 3 }, 'a body', NAMED],
    ['quantity', 'response', { serviceId: 's', quantity: 3 }, 'a body', NAMED],
    [undefined, 'response', { serviceId: 's', quantity: 2 }, 'a body', NAMED],
    [undefined, 'list', { serviceId: 's', quantity: 2 }, 'a body', NAMED],
    [undefined, 'response', { serviceId: `a${REDACTED}` }, 'a body', NAMED],
    [undefined, 'list', { serviceId: `a${REDACTED}` }, 'a body', NAMED],
    [undefined, 'response', { quantity: 3 }, 'no body', BODILESS],
    ['quantity', 'list', { quantity: 3 }, 'no body', BODILESS],
    [undefined, 'list', { quantity: 3 }, 'no tags', BARE],
    // This value has no canonical form, so this client cannot have sent it.
    ['serviceId', 'list', { serviceId: '\ud800' }, 'a body', NAMED],
  ])('the contradiction is %s for a %s with %j if the record has %s', (field, found, echo, _what, asked) => {
    expect(contradiction(deriveId, asked, echo, found)).toBe(field)
  })

  it('an error of the runtime is not taken for a contradiction', () => {
    const broken = (): never => {
      throw new Error('no hashes')
    }
    expect(() => contradiction(broken, NAMED, { quantity: 2 }, 'list')).toThrow('no hashes')
  })

  it.each([
    [false, {}],
    [false, { target: 't' }],
    [true, { target: 'u' }],
  ])('a contradiction of the target is %s for %j', (differs, echo) => {
    expect(hasOtherTarget(deriveId, NAMED, echo)).toBe(differs)
  })
})

it('only own fields of the expected type are compared', () => {
  const nothing = { externalOrderId: undefined, serviceId: undefined, quantity: undefined, target: undefined }
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
