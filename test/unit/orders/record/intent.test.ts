import { describe, expect, it, vi } from 'vitest'
import { InvalidRequestError } from '../../../../src/errors/classes.ts'
import type { Member } from '../../../../src/identity/canonical.ts'
import { digestOf, fingerprintOf } from '../../../../src/identity/keys.ts'
import { type IntentOptions, readIntent, slotOfInvalid } from '../../../../src/orders/record/intent.ts'
import { platformRuntime } from '../../../../src/runtime.ts'
import type { CreateOrderRequest } from '../../../../src/schemas/order.ts'
import { throwing } from '../../../support/calls.ts'

const { deriveId } = platformRuntime
const read = (request: unknown, options: IntentOptions = {}) =>
  readIntent(deriveId, request as CreateOrderRequest, options)

const request = { serviceId: 's', target: 't', quantity: 10, metadata: { externalOrderId: 'r1' } }
const { metadata: _metadata, ...bare } = request
const MEMBERS: readonly Member[] = [
  ['quantity', '10'],
  ['serviceId', '"s"'],
  ['target', '"t"'],
]

function issuesOf(call: () => unknown): readonly string[] {
  try {
    call()
  } catch (error) {
    if (error instanceof InvalidRequestError) {
      expect(error.charged).toBe('no')
      return error.issues.map(({ path, message }) => `${path} ${message}`)
    }
    throw error
  }
  return []
}

describe('the name of an intent', () => {
  it('an intent is named by reference, then by key, then by payload', () => {
    expect(read(request).slot).toBe('ref:r1')
    expect(read(request, { idempotencyKey: 'k' }).slot).toBe('ref:r1')
    expect(read(bare, { idempotencyKey: 'k' }).slot).toBe('key:k')
    expect(read(bare).slot).toBe(`anon:${digestOf(deriveId, MEMBERS)}`)
    expect(read(bare, { duplicateKey: 'own' }).slot).toBe('key:own')
    const live = { externalOrderId: undefined, toJSON: () => ({ externalOrderId: 'r1' }) }
    expect(read({ ...bare, metadata: live }).slot).toBe('ref:r1')
  })

  it("an intent's name contains only its parts", () => {
    const parts = ['slot', 'rowId', 'body', 'fingerprint']
    expect(Object.keys(JSON.parse(JSON.stringify(read(bare))))).toEqual(parts)
    expect(read(request).externalOrderId).toBe('r1')
    expect(read(request).fingerprint).toEqual(fingerprintOf('ref:r1', MEMBERS))
    expect(read(bare, { idempotencyKey: 'k' }).idempotencyKey).toBe('k')
  })

  it("an intent's body is the same text for every spelling of the request", () => {
    const turned = { quantity: 10, metadata: { externalOrderId: 'r1' }, target: 't', serviceId: 's' }
    expect(read(turned).body).toBe(read(request).body)
    expect(read(request).body).toBe(
      '{"metadata":{"externalOrderId":"r1"},"quantity":10,"serviceId":"s","target":"t"}',
    )
  })
})

describe('a request that is not sent', () => {
  const referred = (externalOrderId: unknown) => ({ ...request, metadata: { externalOrderId } })

  const REFERENCE = 'metadata.externalOrderId'
  const EDGE =
    'begins or ends with white space or an invisible character, and so differs from one that looks the same'

  it.each<[string, unknown, RegExp | string]>([
    ['nothing', undefined, ' is undefined'],
    ['null', null, / /],
    ['an array', [], / /],
    ['no service', { target: 't', quantity: 1 }, /^serviceId /],
    ['a blank target', { ...request, target: ' ' }, 'target must not be blank'],
    ['quantity zero', { ...request, quantity: 0 }, 'quantity must be at least 1'],
    ['a fractional quantity', { ...request, quantity: 1.5 }, /^quantity /],
    ['NaN', { ...request, quantity: Number.NaN }, 'quantity is NaN'],
    ['a BigInt', { ...request, quantity: 10n }, 'quantity is a bigint'],
    ['an empty reference', referred(''), `${REFERENCE} must not be blank`],
    ['a reference with white space at its end', referred('r1 '), `${REFERENCE} ${EDGE}`],
    ['a number as reference', referred(7), /^metadata\.externalOrderId /],
    ['a lone surrogate', referred('\ud800'), /lone surrogate/],
    // toJSON() may add fields after the first check of their names.
    ['a toJSON()', { ...bare, toJSON: () => ({ metdata: 1, ...bare }) }, 'metdata must be named metadata'],
  ])('an invalid request is rejected, and the error names the field: %s', (_what, wrong, issue) => {
    expect(issuesOf(() => read(wrong))).toEqual([
      typeof issue === 'string' ? issue : expect.stringMatching(issue),
    ])
  })

  it.each([
    [262_144, []],
    [262_145, [' must have at most 262144 bytes as JSON']],
  ])('a request of %i bytes as JSON is rejected with %j', (bytes, issues) => {
    const most = { ...bare, note: '' }
    // Two bytes each in UTF-8, so that the number of characters is far below the limit.
    const room = bytes - read(most).body.length
    const note = `${'é'.repeat(Math.floor(room / 2))}${room % 2 === 0 ? '' : 'x'}`
    expect(issuesOf(() => read({ ...most, note }))).toEqual(issues)
    expect(issuesOf(() => read({ ...most, note: 'x'.repeat(room) }))).toEqual(issues)
  })

  it('an error thrown by a getter is passed on', () => {
    const live = Object.defineProperty({ ...bare }, 'target', { get: throwing('mine'), enumerable: true })
    expect(() => read(live)).toThrow(new Error('mine'))
  })

  it('an undefined key or metadata is rejected if the order has no other name', () => {
    const lost = (path: string): string[] => [expect.stringMatching(`^${path} is undefined, `)]
    expect(issuesOf(() => read(bare, { keyIsUndefined: true }))).toEqual(lost('options.idempotencyKey'))
    expect(issuesOf(() => read({ ...bare, metadata: undefined }))).toEqual(lost('metadata'))
    expect(read(request, { keyIsUndefined: true }).slot).toBe('ref:r1')
    expect(read({ ...bare, metadata: undefined }, { idempotencyKey: 'k' }).slot).toBe('key:k')
    expect(read(bare, { duplicateKey: 'own', keyIsUndefined: true }).slot).toBe('key:own')
  })

  it('an undefined reference is rejected unless the order has another name', () => {
    const lost = { ...request, metadata: { externalOrderId: undefined } }
    expect(issuesOf(() => read(lost))).toEqual([
      expect.stringMatching(/^metadata\.externalOrderId is undefined, .*could place a second order/),
    ])
    expect(read({ ...request, metadata: { note: 'n' } }).slot).toMatch(/^anon:/)
    expect(read(lost, { idempotencyKey: 'k' }).slot).toBe('key:k')
    expect(read(lost, { duplicateKey: 'own' }).slot).toBe('key:own')
  })

  it.each<[string, object]>([
    [
      'a reference that is not enumerable',
      { metadata: Object.defineProperty({}, 'externalOrderId', { value: 'r' }) },
    ],
    ['a reference without a form in JSON', { metadata: { externalOrderId: { toJSON: () => undefined } } }],
    ['metadata without a form in JSON', { metadata: { externalOrderId: 'r', toJSON: () => undefined } }],
    ['metadata that leave the reference out', { metadata: { externalOrderId: 'r', toJSON: () => ({}) } }],
    ['a request that leaves the metadata out', { metadata: { externalOrderId: 'r' }, toJSON: () => bare }],
    ['a request without its empty metadata', { metadata: null, toJSON: () => bare }],
  ])('%s is rejected, because the order would have no name', (_what, lost) => {
    expect(issuesOf(() => read({ ...bare, ...lost } as never))).toEqual([
      expect.stringMatching(/^metadata(\.externalOrderId)? is undefined, or has no form in JSON/),
    ])
  })

  it('a deliberate duplicate has no reference and no key', () => {
    const refused = ['options.allowDuplicate is only for orders without a reference or key; omit it']
    expect(issuesOf(() => read(request, { duplicateKey: 'own' }))).toEqual(refused)
    expect(issuesOf(() => read(bare, { duplicateKey: 'own', idempotencyKey: 'k' }))).toEqual(refused)
  })

  it.each([
    ['ref:r1', { metadata: { externalOrderId: 'r1' } }, 'k'],
    ['ref:r1', { toJSON: () => ({ metadata: { toJSON: () => ({ externalOrderId: 'r1' }) } }) }, undefined],
    ['key:k', { metadata: { externalOrderId: 7 } }, 'k'],
    [undefined, undefined, 'k k'],
  ])('the name of an invalid order is %s for %j with the key %s', (slot, invalid, key) => {
    expect(slotOfInvalid(invalid, key)).toBe(slot)
  })

  it('an invalid order whose fields throw has no name', () => {
    const live = Object.defineProperty({}, 'metadata', { get: throwing('mine') })
    expect(slotOfInvalid(live, undefined)).toBeUndefined()
    expect(slotOfInvalid(live, 'k')).toBe('key:k')
  })

  it('a key that a header would change is rejected', () => {
    for (const idempotencyKey of ['', ' k', 'k k', 'kä', 'k\n', 'k'.repeat(256)])
      expect(issuesOf(() => read(bare, { idempotencyKey })).join()).toContain('options.idempotencyKey')
    expect(read(bare, { idempotencyKey: 'k'.repeat(255) }).idempotencyKey).toHaveLength(255)
  })
})

it('compares a name with the known ones once, as long as it remembers no more than 1,000', async () => {
  vi.resetModules()
  const { misnamedFields } = await import('../../../../src/orders/record/intent.ts')
  const fold = vi.spyOn(String.prototype, 'toLowerCase')
  // Four names are remembered from the beginning.
  const fields = Object.fromEntries(Array.from({ length: 997 }, (_, at) => [`field${at}`, at]))
  expect(misnamedFields(fields)).toEqual([])
  expect(fold).toHaveBeenCalledTimes(997)
  expect(misnamedFields(fields)).toEqual([])
  expect(fold).toHaveBeenCalledTimes(998)
  fold.mockRestore()
})
