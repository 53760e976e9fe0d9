import { describe, expect, it } from 'vitest'
import { apiKeyTag, proxiedTag } from '../../../../src/identity/keys.ts'
import {
  continued,
  isShared,
  nextKey,
  sameApiKey,
  startKey,
  tagOf,
} from '../../../../src/orders/protocol/keys.ts'
import type { Intent } from '../../../../src/orders/record/intent.ts'
import type { JournalRecord } from '../../../../src/orders/record/record.ts'
import { uuidV5 } from '../../../../src/uuid-v5.ts'
import { derivedFor, LEFT_OPEN, NOW, ORDER, orderContext } from '../../../support/order-context.ts'
import { type Changes, here, intent, record } from './found.ts'

const context = orderContext()
const unlabelled = orderContext({ account: undefined })
const { externalOrderId: _reference, ...nameless } = { ...intent, slot: 'anon:x' }
const refused = { state: 'rejected', ambiguous: false, rejection: { kind: 'refused' } } as const
const first = { key: derivedFor('r1'), origin: 'derived', generation: 0 } as const

describe('the key that an order is sent under', () => {
  it.each<[string, object, Intent | undefined, Changes | undefined]>([
    ['a new order with a reference', first, intent, undefined],
    [
      'a new order with a given key',
      { key: 'k', origin: 'caller', generation: 0 },
      { ...intent, idempotencyKey: 'k' },
      undefined,
    ],
    [
      'a deliberate duplicate',
      { key: 'd', origin: 'caller', generation: 0 },
      { ...nameless, duplicateKey: 'd' },
      undefined,
    ],
    ['an open order', { ...first, firstSentAt: 5 }, intent, { firstSentAt: 5 }],
    ['an order that recovery sends', { ...first, firstSentAt: 5 }, undefined, { firstSentAt: 5 }],
    [
      'an open order whose key the caller gives now',
      { ...first, origin: 'caller' },
      { ...intent, idempotencyKey: first.key },
      {},
    ],
    ['a refused order inside its window', first, intent, refused],
    [
      'a refused order that was never sent',
      { ...first, firstSentAt: undefined },
      intent,
      { ...refused, firstSentAt: undefined },
    ],
    [
      'a refused order past its window',
      { key: derivedFor('r1', 1), origin: 'derived', generation: 1 },
      intent,
      { ...refused, firstSentAt: 0 },
    ],
    [
      'a refused order past a later window',
      { key: derivedFor('r1', 5), origin: 'derived', generation: 5 },
      intent,
      { ...refused, firstSentAt: 0, generation: 2, highest: 4 },
    ],
    [
      'a refused order in the window of its first key',
      { ...first, firstSentAt: NOW },
      intent,
      { ...refused, key: 'k2', generation: 2, firstKeySentAt: NOW },
    ],
  ])('the key of %s is %j', (_what, key, wanted, changes) => {
    expect(startKey(context, wanted, changes && record(changes), here)).toMatchObject(key)
  })

  it.each([
    ['without a reference', context, nameless],
    ['without an account', unlabelled, intent],
  ])('the key of a new order is random %s', (_without, its, wanted) => {
    const made = startKey(its, wanted, undefined, here)
    expect(made).toMatchObject({ origin: 'random', generation: 0 })
    expect(startKey(its, wanted, undefined, here).key).not.toBe(made.key)
  })

  it('the next key is one that was never sent', () => {
    expect(nextKey(context, LEFT_OPEN)).toEqual({
      key: derivedFor('r1', 1),
      origin: 'derived',
      generation: 1,
    })
    expect(nextKey(context, { ...LEFT_OPEN, generation: 2, highest: 4 })).toMatchObject({ generation: 5 })
    expect(nextKey(unlabelled, LEFT_OPEN)).toMatchObject({ origin: 'random', generation: 1 })
  })

  it.each([
    [true, 'derived', context],
    [true, 'caller', context],
    [false, 'random', context],
    [false, 'derived', orderContext({ journal: durable() })],
  ] as const)('another process may send the key (%s) if it is %s', (shared, origin, its) => {
    expect(isShared(its, { ...LEFT_OPEN, origin })).toBe(shared)
  })

  function durable() {
    const { journal } = orderContext()
    Object.assign(journal.store, { durability: 'server' })
    return journal
  }
})

describe('the API key that may send', () => {
  const { key } = LEFT_OPEN
  const sent = { ...LEFT_OPEN, apiKeyTag: apiKeyTag(uuidV5, key, 'secret') }
  const { get } = context.connection.credentials
  const proxied = orderContext({}, { credentials: { rotates: true, get, proxyTag: 'of the proxy' } })
  const byProxy = proxiedTag(uuidV5, key, 'of the proxy')

  it('an order is repeated only under the API key that sent it, unless the service scopes keys by customer', () => {
    expect(sameApiKey(context, sent, 'secret')).toBe(true)
    expect(sameApiKey(context, sent, 'rotated')).toBe(false)
    expect(sameApiKey(context, sent, null)).toBe(false)
    expect(sameApiKey(proxied, { ...sent, apiKeyTag: byProxy }, null)).toBe(true)
    expect(sameApiKey(orderContext({ idempotencyScope: 'customer' }), sent, 'rotated')).toBe(true)
  })

  it.each([
    ['of the API key', apiKeyTag(uuidV5, key, 'secret'), context, 'secret', undefined],
    [
      'of the API key, even if a proxy added one before',
      apiKeyTag(uuidV5, key, 'secret'),
      proxied,
      'secret',
      byProxy,
    ],
    ['of the proxy', byProxy, proxied, null, undefined],
    ['that the proxy told an earlier page', byProxy, context, null, byProxy],
    [
      'of no API key, until the proxy tells its own',
      apiKeyTag(uuidV5, key, null),
      context,
      null,
      'of an API key',
    ],
  ])('the tag is the one %s', (_of, tag, its, credential, stored) => {
    expect(tagOf(its, key, credential, stored)).toBe(tag)
  })
})

it.each<[boolean, string, Changes]>([
  [true, 'is open', {}],
  [true, 'was never readable', { state: 'created' }],
  [false, 'exists', { state: 'created', order: ORDER }],
  [false, 'was refused', refused],
])('an identical call continues a nameless order (%s) that %s', (continues, _is, changes) => {
  const found: JournalRecord = record({ ...changes, slot: 'anon:x' })
  expect(continued(found)).toBe(continues ? found : undefined)
  expect(continued({ ...found, slot: 'ref:r1' })).toMatchObject({ slot: 'ref:r1' })
  expect(continued(undefined)).toBeUndefined()
})
