import type { SandboxOptions } from 'customer-ordering-sdk/sandbox'
import { expect, it, vi } from 'vitest'
import { API_KEY_TAG } from '../../../src/identity/keys.ts'
import type { ClientOptions } from '../../../src/options.ts'
import { all, throwing } from '../../support/calls.ts'
import { keysOf, sameRequest } from '../../support/history.ts'
import { failure, Lab, order } from '../../support/lab.ts'
import { on } from '../../support/stores.ts'

const MINUTE = 60_000
const UNKNOWN = { charged: 'unknown' } as const
const UNRESOLVED = { code: 'unresolved_order', ...UNKNOWN, attempts: 0 } as const
/** A service that scopes keys by customer, and a client that knows it. */
const BY_CUSTOMER = [{ behaviour: { keyScope: 'customer' } }, { idempotencyScope: 'customer' }] as const

/** A customer with two API keys, and the key of another customer. */
function keys(options: SandboxOptions = {}): { lab: Lab; old: string; fresh: string; foreign: string } {
  const lab = new Lab(options)
  const { sandbox } = lab
  const fresh = sandbox.addApiKey({ customer: sandbox.customerId })
  return { lab, old: sandbox.apiKey, fresh, foreign: sandbox.organizationApiKey }
}

/** Returns one key after the other, then the last one forever. */
const inTurn = (...given: readonly string[]): (() => string) => {
  let next = 0
  return () => given[Math.min(next++, given.length - 1)] as string
}

const create = (lab: Lab, options: ClientOptions) => lab.client(options).orders.create(order('r1'))

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
  sameRequest(lab)
})

it("only a proxy's response can change the tag of the API key in the record", async () => {
  const { lab } = keys()
  const fetch: typeof globalThis.fetch = async (...request) => {
    const { status, body } = await lab.sandbox.fetch(...request)
    return new Response(body, { status, headers: { [API_KEY_TAG]: 'p:1234' } })
  }
  await create(lab, {})
  const { apiKeyTag } = (await lab.record('ref:r1')) ?? {}
  lab.wipe()
  await create(lab, { fetch })
  expect(apiKeyTag).toEqual(expect.any(String))
  expect(await lab.record('ref:r1')).toMatchObject({ state: 'created', apiKeyTag })
})

it.each([
  [
    'if an attempt is in doubt, because keys may be scoped by API key',
    'commitThenDrop',
    { code: 'connection', ...UNKNOWN },
  ],
  [
    'to read a charged order, which could buy it again',
    'cutBody',
    { code: 'invalid_response', charged: 'yes' },
  ],
] as const)('a rotated API key is not used %s', async (_when, type, told) => {
  const { lab, old, fresh } = keys()
  lab.fault({ type })
  const error = await failure(create(lab, { apiKey: inTurn(old, fresh) }))
  expect(error).toMatchObject({ ...told, attempts: 1 })
  expect(lab.posts).toHaveLength(1)
  lab.sandbox.expectCharges(1)
  // The order can be read with the key that sent it.
  expect((await create(lab, { apiKey: old })).id).toBe(lab.charged())
})

it.each(['commitThenDrop', 'cutBody'] as const)(
  'a rotated API key is used if the service scopes keys by customer, even after %s',
  async (type) => {
    const { lab, old, fresh } = keys(BY_CUSTOMER[0])
    lab.fault({ type })
    const placed = await create(lab, { apiKey: inTurn(old, fresh), ...BY_CUSTOMER[1] })
    expect(placed.id).toBe(lab.charged())
    expect(new Set(lab.posts.map(({ apiKey }) => apiKey)).size).toBe(2)
  },
)

it('a rotated API key is not used if it cannot be recorded', async () => {
  const { lab, old, fresh } = keys()
  lab.sandbox.revokeApiKey(old)
  const client = lab.elsewhere({ apiKey: inTurn(old, fresh) }, on('update', 'rejects', 1))
  const error = await failure(client.orders.create(order('r1')))
  expect(error).toMatchObject({ code: 'authentication', charged: 'no', attempts: 1 })
  expect(lab.posts).toHaveLength(1)
})

it('a rotated API key is not used if the machine slept while it was recorded and the window ended', async () => {
  const { lab, old, fresh } = keys(BY_CUSTOMER[0])
  lab.fault({ type: 'commitThenDrop' })
  const client = lab.elsewhere({ apiKey: inTurn(old, fresh), ...BY_CUSTOMER[1] }, (operation, count) => {
    if (operation !== 'update' || count > 1) return undefined
    lab.runtime.jump(60 * MINUTE)
    lab.sandbox.forgetKeys()
    return undefined
  })
  const error = await failure(client.orders.create(order('r1')))
  expect(error).toMatchObject({ ...UNKNOWN, attempts: 1 })
  expect(lab.posts).toHaveLength(1)
  lab.charged()
})

it('after a 401, the API key is requested once more, not twice', async () => {
  const { lab, old } = keys()
  lab.sandbox.revokeApiKey(old)
  const apiKey = vi.fn(() => old)
  const error = await failure(create(lab, { apiKey }))
  expect(error).toMatchObject({ code: 'authentication', charged: 'no', attempts: 2 })
  expect(apiKey).toHaveBeenCalledTimes(2)
  const rejection = { kind: 'not_processed' }
  expect(await lab.record('ref:r1')).toMatchObject({ state: 'rejected', rejection })
})

it('recovery sends an order once, also if its API key was refused and another one is available', async () => {
  const { lab, fresh } = keys()
  await lab.doubted()
  lab.fault({ type: 'status', status: 401 }, 1, 'createOrder')
  const before = lab.posts.length
  await all(lab.client({ apiKey: () => fresh, idempotencyScope: 'customer' }).orders.recover())
  expect(lab.posts.length - before).toBe(1)
})

it('if the API key is no longer available, the order stays as it is', async () => {
  const { lab, old } = keys()
  let asked = 0
  const apiKey = (): string => {
    if (++asked > 1) throw new Error('the vault is sealed')
    return old
  }
  lab.fault({ type: 'commitThenDrop' })
  const doubt = await failure(create(lab, { apiKey }))
  const cause = new Error('the vault is sealed')
  expect(doubt).toMatchObject({ code: 'configuration', charged: 'unknown', attempts: 1, cause })
  expect(JSON.stringify(doubt)).not.toContain('vault')
  const never = await failure(lab.client({ apiKey }).orders.create(order('r2')))
  expect(never).toMatchObject({ code: 'configuration', charged: 'no', attempts: 0 })
  expect(await lab.record('ref:r2')).toBeUndefined()
  expect(lab.posts).toHaveLength(1)
})

it('after a rotation, an order in doubt needs a person', async () => {
  const { lab, fresh } = keys()
  await lab.doubted()
  expect(await failure(create(lab, { apiKey: fresh }))).toMatchObject(UNRESOLVED)
  expect(lab.posts).toHaveLength(1)
  lab.sandbox.expectCharges(1)
})

it('after a rotation, the order continues if the service scopes keys by customer', async () => {
  const { lab, fresh } = keys(BY_CUSTOMER[0])
  await lab.doubted()
  expect((await create(lab, { apiKey: fresh, ...BY_CUSTOMER[1] })).id).toBe(lab.charged())
  expect((await lab.record('ref:r1'))?.apiKeyTag).toMatch(/^[0-9a-f]{8}$/)
})

it('a remembered order is returned without requesting an API key', async () => {
  const { lab } = keys()
  const { id } = await lab.create()
  expect((await create(lab, { apiKey: throwing('not needed') })).id).toBe(id)
})

it('after a rotation, a refused order is sent again, because nothing is in doubt', async () => {
  const { lab, fresh } = keys()
  await lab.refused()
  expect((await create(lab, { apiKey: fresh })).id).toBe(lab.charged())
  expect(keysOf(lab)).toEqual([0, 0])
})

it('a call that waited for another process notices a rotated API key', async () => {
  const { lab, fresh } = keys()
  lab.fault({ type: 'commitThenDrop' })
  lab.fault({ type: 'delay', ms: 3000 })
  const { ending } = await lab.begin(() => failure(create(lab, { maxRetries: 0 })))
  const error = await failure(lab.elsewhere({ apiKey: fresh }).orders.create(order('r1')))
  expect(await ending).toMatchObject(UNKNOWN)
  expect(error).toMatchObject(UNRESOLVED)
  lab.sandbox.expectCharges(1)
})

it("another customer's API key never pays for an order that the first customer's key has in doubt", async () => {
  const { lab, foreign: apiKey } = keys()
  await lab.doubted()
  expect(await failure(create(lab, { apiKey }))).toMatchObject(UNRESOLVED)
  expect(await all(lab.client({ apiKey }).orders.recover())).toMatchObject([
    { outcome: 'needs_attention', reason: 'api_key_changed' },
  ])
  lab.runtime.jump(5 * MINUTE)
  await failure(create(lab, { apiKey }))
  lab.sandbox.expectCharges(1)
  expect(lab.sandbox.ledger[0]?.customerId).toBe(lab.sandbox.customerId)
})

it("a proxy's API key is distinct from having none", async () => {
  const { lab, old } = keys()
  const withKey = (input: RequestInfo | URL, init?: RequestInit): Request => {
    const request = new Request(input, init)
    request.headers.set('authorization', `Bearer ${old}`)
    return request
  }
  const viaProxy: typeof fetch = (input, init) => lab.sandbox.fetch(withKey(input, init))
  const proxied = { apiKey: null, fetch: viaProxy }
  await lab.doubted('commitThenDrop', order('r1'), proxied)
  expect(await lab.record('ref:r1')).toMatchObject({ apiKeyTag: 'none' })
  expect(await failure(create(lab, { apiKey: old }))).toMatchObject({ code: 'unresolved_order' })
  expect((await create(lab, proxied)).id).toBe(lab.charged())
})
