import type { SandboxOptions } from 'customer-ordering-sdk/sandbox'
import { describe, expect, it } from 'vitest'
import { on } from '../../support/faulty-store.ts'
import { failure, Lab, order, told } from '../../support/lab.ts'
import { throwing } from '../../support/throwing.ts'

const MINUTE = 60_000

/** A customer with two API keys, and the key of another customer. */
function keys(options: SandboxOptions = {}): { lab: Lab; old: string; fresh: string; foreign: string } {
  const lab = new Lab(options)
  const { sandbox } = lab
  return {
    lab,
    old: sandbox.apiKey,
    fresh: sandbox.addApiKey({ customer: sandbox.customerId }),
    foreign: sandbox.organizationApiKey,
  }
}

/** Returns one key after the other, then the last one forever. */
const inTurn = (...given: readonly string[]): (() => string) => {
  let next = 0
  return () => given[Math.min(next++, given.length - 1)] as string
}

describe('an API key that is rotated between attempts', () => {
  it('a rotated API key is used immediately if no attempt is in doubt, and is recorded before it is sent', async () => {
    const { lab, old, fresh } = keys()
    lab.sandbox.revokeApiKey(old)
    const tags: (string | undefined)[] = []
    const placed = await lab
      .client({
        apiKey: inTurn(old, fresh),
        fetch: async (input, init) => {
          tags.push((await lab.record('ref:r1'))?.apiKeyTag)
          return await lab.sandbox.fetch(input as string, init)
        },
      })
      .orders.create(order('r1'))

    expect(placed.id).toBe(lab.charged())
    expect(lab.posts.map(({ status }) => status)).toEqual([401, 201])
    expect(tags[0]).not.toBe(tags[1])
    expect(new Set(lab.posts.map(({ key, body }) => `${key} ${body}`)).size).toBe(1)
  })

  it('a rotated API key is not used if an attempt is in doubt, because keys may be scoped by API key', async () => {
    const { lab, old, fresh } = keys()
    lab.fault({ type: 'commitThenDrop' })
    const error = await failure(lab.client({ apiKey: inTurn(old, fresh) }).orders.create(order('r1')))
    expect(error).toMatchObject({ code: 'connection', charged: 'unknown', attempts: 1 })
    expect(lab.posts).toHaveLength(1)
    lab.sandbox.expectCharges(1)
  })

  it('a rotated API key is not used to read a charged order, which could buy it again', async () => {
    const { lab, old, fresh } = keys()
    lab.fault({ type: 'cutBody' })
    const error = await failure(lab.client({ apiKey: inTurn(old, fresh) }).orders.create(order('r1')))
    expect(error).toMatchObject({ code: 'invalid_response', charged: 'yes', attempts: 1 })
    expect(lab.posts).toHaveLength(1)
    lab.sandbox.expectCharges(1)
    // The order can be read with the key that sent it.
    const placed = await lab.client({ apiKey: old }).orders.create(order('r1'))
    expect(placed.id).toBe(lab.charged())
  })

  it('a rotated API key is used in both cases if the service scopes keys by customer', async () => {
    for (const type of ['commitThenDrop', 'cutBody'] as const) {
      const { lab, old, fresh } = keys({ behaviour: { keyScope: 'customer' } })
      lab.fault({ type })
      const client = lab.client({ apiKey: inTurn(old, fresh), idempotencyScope: 'customer' })
      const placed = await client.orders.create(order('r1'))
      expect(placed.id).toBe(lab.charged())
      expect(new Set(lab.posts.map(({ apiKey }) => apiKey)).size).toBe(2)
    }
  })

  it('a rotated API key is not used if it cannot be recorded', async () => {
    const { lab, old, fresh } = keys()
    lab.sandbox.revokeApiKey(old)
    const client = lab.elsewhere({ apiKey: inTurn(old, fresh) }, on('update', 'rejects', 1))
    const error = await failure(client.orders.create(order('r1')))
    expect(error).toMatchObject({ code: 'authentication', charged: 'no', attempts: 1 })
    expect(lab.posts).toHaveLength(1)
  })

  it('a rotated API key is not used if the machine slept while it was recorded and the window ended', async () => {
    const { lab, old, fresh } = keys({ behaviour: { keyScope: 'customer' } })
    lab.fault({ type: 'commitThenDrop' })
    const client = lab.elsewhere(
      { apiKey: inTurn(old, fresh), idempotencyScope: 'customer' },
      (operation, count) => {
        if (operation !== 'update' || count > 1) return undefined
        lab.runtime.jump(60 * MINUTE)
        lab.sandbox.forgetKeys()
        return undefined
      },
    )
    expect(await failure(client.orders.create(order('r1')))).toMatchObject({
      charged: 'unknown',
      attempts: 1,
    })
    expect(lab.posts).toHaveLength(1)
    lab.sandbox.expectChargedOnce('r1')
  })

  it('after a 401, the API key is requested once more, not twice', async () => {
    const { lab, old } = keys()
    lab.sandbox.revokeApiKey(old)
    let asked = 0
    const apiKey = (): string => {
      asked++
      return old
    }
    const error = await failure(lab.client({ apiKey }).orders.create(order('r1')))
    expect(error).toMatchObject({ code: 'authentication', charged: 'no', attempts: 2 })
    expect(asked).toBe(2)
    expect(await lab.record('ref:r1')).toMatchObject({
      state: 'rejected',
      rejection: { kind: 'not_processed' },
    })
  })

  it('if the API key is no longer available, the order stays as it is', async () => {
    const { lab, old } = keys()
    let asked = 0
    const apiKey = (): string => {
      if (++asked > 1) throw new Error('the vault is sealed')
      return old
    }
    lab.fault({ type: 'commitThenDrop' })
    const doubt = await failure(lab.client({ apiKey }).orders.create(order('r1')))
    const cause = new Error('the vault is sealed')
    expect(doubt).toMatchObject({ code: 'configuration', charged: 'unknown', attempts: 1, cause })
    expect(JSON.stringify(doubt)).not.toContain('vault')
    const never = await failure(lab.client({ apiKey }).orders.create(order('r2')))
    expect(never).toMatchObject({ code: 'configuration', charged: 'no', attempts: 0 })
    expect(await lab.record('ref:r2')).toMatchObject({ state: 'rejected', rejection: { kind: 'cancelled' } })
    expect(lab.posts).toHaveLength(1)
  })
})

describe('an API key that is rotated between calls', () => {
  it('after a rotation, an order in doubt needs a person', async () => {
    const { lab, old, fresh } = keys()
    lab.fault({ type: 'commitThenDrop' })
    await failure(lab.client({ apiKey: old, maxRetries: 0 }).orders.create(order('r1')))
    const error = await failure(lab.client({ apiKey: fresh }).orders.create(order('r1')))
    expect(error).toMatchObject({ code: 'unresolved_order', charged: 'unknown', attempts: 0 })
    expect(error.message).toContain('another API key')
    expect(lab.posts).toHaveLength(1)
    lab.sandbox.expectCharges(1)
  })

  it('after a rotation, the order continues if the service scopes keys by customer', async () => {
    const { lab, old, fresh } = keys({ behaviour: { keyScope: 'customer' } })
    lab.fault({ type: 'commitThenDrop' })
    await failure(lab.client({ apiKey: old, maxRetries: 0 }).orders.create(order('r1')))
    const placed = await lab
      .client({ apiKey: fresh, idempotencyScope: 'customer' })
      .orders.create(order('r1'))
    expect(placed.id).toBe(lab.charged())
    expect((await lab.record('ref:r1'))?.apiKeyTag).toMatch(/^[0-9a-f]{8}$/)
  })

  it('a remembered order is returned without requesting an API key', async () => {
    const { lab, old } = keys()
    const placed = await lab.client({ apiKey: old }).orders.create(order('r1'))
    const apiKey = throwing('not needed')
    expect((await lab.client({ apiKey }).orders.create(order('r1'))).id).toBe(placed.id)
  })

  it('after a rotation, a refused order is sent again, because nothing is in doubt', async () => {
    const { lab, old, fresh } = keys()
    lab.drain()
    await failure(lab.client({ apiKey: old }).orders.create(order('r1')))
    lab.topUp()
    const placed = await lab.client({ apiKey: fresh }).orders.create(order('r1'))
    expect(placed.id).toBe(lab.charged())
    expect(new Set(lab.posts.map(({ key }) => key)).size).toBe(1)
  })

  it('a call that waited for another process notices a rotated API key', async () => {
    const { lab, old, fresh } = keys()
    lab.fault({ type: 'commitThenDrop' })
    lab.fault({ type: 'delay', ms: 3000 })
    const { ending } = await lab.begin(() =>
      told(lab.client({ apiKey: old, maxRetries: 0 }).orders.create(order('r1'))),
    )
    const error = await failure(lab.elsewhere({ apiKey: fresh }).orders.create(order('r1')))
    expect((await ending).error?.charged).toBe('unknown')
    expect(error).toMatchObject({ code: 'unresolved_order', charged: 'unknown', attempts: 0 })
    lab.sandbox.expectCharges(1)
  })
})

describe('an API key of another customer', () => {
  it("another customer's API key never pays for an order that the first customer's key has in doubt", async () => {
    const { lab, old, foreign } = keys()
    lab.fault({ type: 'commitThenDrop' })
    await failure(lab.client({ apiKey: old, maxRetries: 0 }).orders.create(order('r1')))
    const error = await failure(lab.client({ apiKey: foreign }).orders.create(order('r1')))
    expect(error).toMatchObject({ code: 'unresolved_order', charged: 'unknown', attempts: 0 })
    const reasons = []
    for await (const { reason, outcome } of lab.client({ apiKey: foreign }).orders.recover())
      reasons.push([outcome, reason])
    expect(reasons).toEqual([['needs_attention', 'api_key_changed']])
    lab.runtime.jump(5 * MINUTE)
    await failure(lab.client({ apiKey: foreign }).orders.create(order('r1')))
    lab.sandbox.expectCharges(1)
    expect(lab.sandbox.ledger[0]?.customerId).toBe(lab.sandbox.customerId)
  })
})

it("a proxy's API key is distinct from having none", async () => {
  const { lab, old } = keys()
  const withKey = (input: RequestInfo | URL, init?: RequestInit): Request => {
    const request = new Request(input, init)
    request.headers.set('authorization', `Bearer ${old}`)
    return request
  }
  const viaProxy: typeof fetch = (input, init) => lab.sandbox.fetch(withKey(input, init))
  lab.fault({ type: 'commitThenDrop' })
  await failure(lab.client({ apiKey: null, fetch: viaProxy, maxRetries: 0 }).orders.create(order('r1')))
  expect(await lab.record('ref:r1')).toMatchObject({ apiKeyTag: 'none' })
  const error = await failure(lab.client({ apiKey: old }).orders.create(order('r1')))
  expect(error).toMatchObject({ code: 'unresolved_order' })
  const placed = await lab.client({ apiKey: null, fetch: viaProxy }).orders.create(order('r1'))
  expect(placed.id).toBe(lab.charged())
})
