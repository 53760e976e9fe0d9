import { describe, expect, it } from 'vitest'
import { InvalidRequestError } from '../../../src/errors/classes.ts'
import { derivedKey, fingerprintOf, rowIdOf } from '../../../src/orders/identity.ts'
import {
  differingRequestFields,
  type IntentOptions,
  isGenuine,
  readIntent,
  slotOfInvalid,
} from '../../../src/orders/intent.ts'
import type { JournalRecord } from '../../../src/orders/record.ts'
import { platformRuntime } from '../../../src/runtime.ts'
import type { CreateOrderRequest } from '../../../src/schemas/order.ts'
import { LEFT_OPEN } from '../../support/order-context.ts'

const { deriveId } = platformRuntime
const read = (request: unknown, options: IntentOptions = {}) =>
  readIntent(deriveId, request as CreateOrderRequest, options)

const request = { serviceId: 's', target: 't', quantity: 10, metadata: { externalOrderId: 'r1' } }
const { metadata: _metadata, ...bare } = request

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
    expect(read(bare).slot).toBe(`anon:${read(bare).fingerprint}`)
    expect(read(bare, { duplicateKey: 'own' }).slot).toBe('key:own')
  })

  it("an intent's reference may come from toJSON", () => {
    const live = { externalOrderId: undefined, toJSON: () => ({ externalOrderId: 'r1' }) }
    expect(read({ ...bare, metadata: live }).slot).toBe('ref:r1')
  })

  it("an intent's name contains only its parts", () => {
    expect(Object.keys(read(bare))).toEqual(['slot', 'rowId', 'body', 'request', 'fingerprint'])
    expect(read(request).externalOrderId).toBe('r1')
    expect(read(bare, { idempotencyKey: 'k' }).idempotencyKey).toBe('k')
  })
})

describe('the body of an intent', () => {
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

  it.each<[string, unknown, string[]]>([
    ['nothing', undefined, [' is undefined']],
    ['null', null, [expect.stringContaining(' ')]],
    ['an array', [], [expect.stringContaining(' ')]],
    ['no service', { target: 't', quantity: 1 }, [expect.stringContaining('serviceId ')]],
    ['a blank target', { ...request, target: ' ' }, ['target must not be blank']],
    ['quantity zero', { ...request, quantity: 0 }, ['quantity must be at least 1']],
    ['a fractional quantity', { ...request, quantity: 1.5 }, [expect.stringContaining('quantity ')]],
    ['NaN', { ...request, quantity: Number.NaN }, ['quantity is NaN']],
    ['a BigInt', { ...request, quantity: 10n }, ['quantity is a bigint']],
    ['an empty reference', referred(''), ['metadata.externalOrderId must not be blank']],
    ['a number as reference', referred(7), [expect.stringContaining('metadata.externalOrderId ')]],
    ['a lone surrogate', referred('\ud800'), [expect.stringContaining('lone surrogate')]],
  ])('an invalid request is rejected, and the error names the field: %s', (_what, wrong, issues) => {
    expect(issuesOf(() => read(wrong))).toEqual(issues)
  })

  it('an invalid request is rejected with a message that explains it', () => {
    expect(() => read({ ...request, target: ' ' })).toThrow(
      'The order is not valid: `target` must not be blank. Nothing was sent.',
    )
  })

  it('an error thrown by a getter is passed on', () => {
    const mine = new Error('mine')
    const live = {
      ...bare,
      get target(): never {
        throw mine
      },
    }
    expect(() => read(live)).toThrow(mine)
  })

  it('a request whose name only comes from toJSON() is rejected', () => {
    const live = { ...bare, toJSON: () => ({ ...bare, metdata: { externalOrderId: 'r1' } }) }
    expect(issuesOf(() => read(live))).toEqual(['metdata must be named metadata'])
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
      expect.stringMatching(/^metadata\.externalOrderId is undefined, so .*could place a second order/),
    ])
    expect(read({ ...request, metadata: { note: 'n' } }).slot).toMatch(/^anon:/)
    expect(read(lost, { idempotencyKey: 'k' }).slot).toBe('key:k')
    expect(read(lost, { duplicateKey: 'own' }).slot).toBe('key:own')
  })

  it('a deliberate duplicate has no reference and no key', () => {
    const refused = ['options.allowDuplicate is only for orders without a reference or key; omit it']
    expect(issuesOf(() => read(request, { duplicateKey: 'own' }))).toEqual(refused)
    expect(issuesOf(() => read(bare, { duplicateKey: 'own', idempotencyKey: 'k' }))).toEqual(refused)
  })

  it.each([
    ['ref:r1', { metadata: { externalOrderId: 'r1' } }, 'k'],
    ['key:k', { metadata: { externalOrderId: 7 } }, 'k'],
    [undefined, undefined, 'k k'],
  ])('the name of an invalid order is %s for %j with the key %s', (slot, invalid, key) => {
    expect(slotOfInvalid(invalid, key)).toBe(slot)
  })

  it('a key that a header would change is rejected', () => {
    for (const idempotencyKey of ['', ' k', 'k k', 'kä', 'k\n', 'k'.repeat(256)])
      expect(issuesOf(() => read(bare, { idempotencyKey })).join()).toContain('options.idempotencyKey')
    expect(read(bare, { idempotencyKey: 'k'.repeat(255) }).idempotencyKey).toHaveLength(255)
  })
})

describe('the fields that differ', () => {
  it('differing fields are named in order, including those of one side, except metadata', () => {
    const metadata = { externalOrderId: 'r2' }
    const other = { serviceId: 's', target: 'u', quantity: 11, color: 'red', metadata }
    expect(differingRequestFields(request, other)).toEqual(['color', 'quantity', 'target'])
    expect(differingRequestFields(request, { ...request, metadata: {} })).toEqual([])
    expect(differingRequestFields({ a: [1, { b: 2 }] }, { a: [1, { b: 2 }] })).toEqual([])
  })
})

describe('a genuine record', () => {
  const labels = { server: 'https://api.example.com', account: 'shop' }
  const intent = {
    slot: 'ref:r1',
    rowId: rowIdOf(deriveId, 'ref:r1'),
    fingerprint: fingerprintOf(deriveId, request),
    body: JSON.stringify(request),
  }
  const key = derivedKey(deriveId, { ...labels, externalOrderId: 'r1', generation: 0 })
  const { rowId: _rowId, ...payload } = intent
  const record: JournalRecord = { ...LEFT_OPEN, ...payload, key, createdAt: 1, updatedAt: 1, version: 1 }
  const genuine = (changes: Partial<JournalRecord> = {}, rowId = intent.rowId) =>
    isGenuine(deriveId, labels, rowId, { ...record, ...changes })

  it('a record is genuine if row, names, payload and key match', () => {
    expect(genuine()).toBe(true)
    const second = derivedKey(deriveId, { ...labels, externalOrderId: 'r1', generation: 1 })
    expect(genuine({ generation: 1, key: second })).toBe(true)
    expect(genuine({ keyOrigin: 'caller', key: 'mine' })).toBe(true)
    expect(genuine({ keyOrigin: 'random', key: 'drawn' })).toBe(true)
  })

  it('a genuine record may have lost its body', () => {
    const { body: _body, ...closed } = record
    expect(isGenuine(deriveId, labels, intent.rowId, closed)).toBe(true)
  })

  it.each<[string, Partial<JournalRecord>]>([
    ['its quantity', { body: intent.body.replace('10', '9000') }],
    ['its reference in the body', { body: intent.body.replace('r1', 'r2') }],
    ['its reference beside the body', { externalOrderId: 'r2' }],
    ['its slot', { slot: 'ref:r2' }],
    ['its derived key', { key: 'another' }],
    ['its generation', { generation: 1 }],
    ['its body, which is no JSON now', { body: '{' }],
    ['its body, which is no order now', { body: '{"quantity":10}' }],
    ['its fingerprint', { fingerprint: 'another' }],
  ])('is not one in which somebody changed %s', (_what, changes) => {
    expect(genuine(changes)).toBe(false)
  })

  it('a record in another row is not genuine', () => {
    expect(genuine({}, read(bare).rowId)).toBe(false)
  })

  it('a record of another account is not genuine', () => {
    expect(isGenuine(deriveId, { ...labels, account: 'other' }, intent.rowId, record)).toBe(false)
    expect(isGenuine(deriveId, { ...labels, account: undefined }, intent.rowId, record)).toBe(false)
  })

  it('a genuine record without another name has its payload in its name', () => {
    const nameless = read(bare)
    const { externalOrderId: _reference, ...rest } = record
    const { slot, body } = nameless
    const own = { ...rest, slot, body, keyOrigin: 'random', key: 'drawn' } as const
    expect(isGenuine(deriveId, labels, nameless.rowId, own)).toBe(true)
    expect(isGenuine(deriveId, labels, nameless.rowId, { ...own, keyOrigin: 'derived' })).toBe(false)
  })

  it('a genuine record named by a key has the key in its name', () => {
    const keyed = read(bare, { idempotencyKey: 'mine' })
    const { externalOrderId: _reference, ...rest } = record
    const own = { ...rest, slot: 'key:mine', body: keyed.body, keyOrigin: 'caller', key: 'mine' } as const
    expect(isGenuine(deriveId, labels, keyed.rowId, own)).toBe(true)
    expect(isGenuine(deriveId, labels, keyed.rowId, { ...own, key: 'other' })).toBe(false)
  })
})
