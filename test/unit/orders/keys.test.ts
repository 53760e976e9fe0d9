import { describe, expect, it } from 'vitest'
import { keyOf, makeKey, nextKey, sameApiKey, tagOf } from '../../../src/orders/claim.ts'
import { apiKeyTag, derivedKey, fieldTags, proxiedTag } from '../../../src/orders/identity.ts'
import { LEFT_OPEN, orderContext } from '../../support/order-context.ts'

const context = orderContext()
const { deriveId } = context.connection.runtime
const { server } = context
const mine = { ...LEFT_OPEN, body: '{"quantity":1}' }

describe('the key of a generation', () => {
  it('is derived from the reference, with the tags of the payload that it is sent with', () => {
    const key = derivedKey(deriveId, { server, account: 'shop', externalOrderId: 'r1', generation: 2 })
    const fields = fieldTags(deriveId, key, { quantity: 1 })
    expect(keyOf(context, mine, 2)).toEqual({ key, keyOrigin: 'derived', generation: 2, fields })
  })

  it('was never sent, where it is the next one', () => {
    expect(nextKey(context, { ...mine, generation: 2 }).generation).toBe(3)
    expect(nextKey(context, { ...mine, generation: 2, highest: 4 }).generation).toBe(5)
  })

  it.each([
    ['without a reference', context, undefined],
    ['without an account', orderContext({ account: undefined }), 'r1'],
  ])('is random %s', (_without, its, reference) => {
    const made = makeKey(its, reference, 1)
    expect(made.keyOrigin).toBe('random')
    expect(makeKey(its, reference, 1).key).not.toBe(made.key)
  })
})

describe('an API key', () => {
  it('may send a key again that it has sent, or that nobody has', () => {
    const sent = { ...mine, apiKeyTag: tagOf(context, mine.key, 'secret') }
    expect(sameApiKey(context, sent, 'secret')).toBe(true)
    expect(sameApiKey(context, sent, 'rotated')).toBe(false)
    expect(sameApiKey(context, sent, null)).toBe(false)
    expect(sameApiKey(context, { ...mine, apiKeyTag: '' }, 'rotated')).toBe(true)
  })

  it('is of no account where the service remembers the keys of all of them', () => {
    expect(sameApiKey(orderContext({ idempotencyScope: 'customer' }), mine, 'rotated')).toBe(true)
  })
})

describe('the tag of the API key that sends', () => {
  const { get } = context.connection.credentials
  const behindProxy = orderContext({}, { credentials: { rotates: true, get, proxyTag: 'of-the-proxy' } })
  const proxied = proxiedTag(deriveId, mine.key, 'of-the-proxy')

  it('is made of the API key, also where a proxy once added one', () => {
    const own = apiKeyTag(deriveId, mine.key, 'secret')
    expect(tagOf(behindProxy, mine.key, 'secret', proxied)).toBe(own)
  })

  it('is made of what the proxy says of its own, without one', () => {
    expect(tagOf(behindProxy, mine.key, null)).toBe(proxied)
  })

  it('stays what the proxy said to an earlier page, until it says it again', () => {
    expect(tagOf(context, mine.key, null, proxied)).toBe(proxied)
    expect(tagOf(context, mine.key, null, 'of-an-api-key')).toBe(apiKeyTag(deriveId, mine.key, null))
  })
})
