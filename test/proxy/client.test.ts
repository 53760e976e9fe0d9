import type { SandboxOptions } from 'customer-ordering-sdk/sandbox'
import { describe, expect, it } from 'vitest'
import { kyTransport } from '../../src/http/ky-transport.ts'
import type { ClientOptions } from '../../src/options.ts'
import { createProxy, type ProxyOptions } from '../../src/proxy/index.ts'
import { deferred } from '../support/calls.ts'
import { failure, Lab, order } from '../support/lab.ts'

type Fault = Parameters<Lab['sandbox']['faults']['add']>[0]['action']

/**
 * Pages behind a proxy. Tests can change the proxy's API key and cut its connection to the page.
 */
function shop(options: SandboxOptions = {}, authorize: ProxyOptions['authorize'] = () => true) {
  const lab = new Lab(options)
  const { sandbox } = lab
  const keys = { now: sandbox.apiKey, next: sandbox.addApiKey({ customer: sandbox.customerId }) }
  const rotate = () => {
    keys.now = keys.next
  }
  /** Whether the next response is lost between proxy and page. */
  let lost = false
  const proxy = createProxy({
    baseUrl: sandbox.baseUrl,
    apiKey: () => keys.now,
    authorize,
    fetch: sandbox.fetch,
  })
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const response = await proxy(new Request(input, init))
    if (!lost) return response
    lost = false
    throw new TypeError('the page lost the proxy')
  }
  const address = { baseUrl: 'https://shop.example/api', server: sandbox.baseUrl, apiKey: null }
  const page = (changes: ClientOptions = {}) => lab.elsewhere({ ...address, fetch, ...changes })
  const lose = () => {
    lost = true
  }
  return { lab, sandbox, fetch, page, rotate, lose }
}

type Shop = ReturnType<typeof shop>

/** An order in doubt: the service accepted it, but the page received no response, or 502. */
async function leaveInDoubt({ page, lose, lab }: Shop, where: 'page' | 'service') {
  const client = page({ maxRetries: 0 })
  // Reads something, as a page that shows its services does. After this, the client knows the tag
  // of the key.
  await client.balance.retrieve()
  if (where === 'page') lose()
  else lab.fault({ type: 'commitThenDrop' })
  const error = await failure(client.orders.create(order('r1')))
  expect(error).toMatchObject({ charged: 'unknown' })
}

describe('a page behind the proxy', () => {
  it.each<[string, Fault | undefined]>([
    ['nothing goes wrong', undefined],
    ['the service cuts the body off', { type: 'cutBody' }],
    ['the service is down before the order', { type: 'status', status: 503 } as Fault],
    ['the service responds with 408', { type: 'status', status: 408 } as Fault],
  ])('behind the proxy, a page orders once if %s', async (_what, action) => {
    const here = shop()
    if (action !== undefined) here.lab.fault(action)
    expect((await here.page().orders.create(order('r1'))).id).toBe(here.lab.charged())
  })

  it('an order that authorize held until its page gave up is never sent later', async () => {
    const held = deferred<boolean>()
    const decisions = [held.promise]
    const { page, lab, sandbox } = shop({}, () => decisions.shift() ?? true)
    const { orders } = page({ maxRetries: 0 })
    expect(await failure(orders.create(order('r1')))).toMatchObject({ code: 'timeout', charged: 'unknown' })
    lab.runtime.jump(10 * 60_000)
    await orders.resolve({ externalOrderId: 'r1' }, { as: 'abandoned' })
    await orders.create(order('r1'))
    held.resolve(true)
    await lab.runtime.settle()
    sandbox.expectChargedOnce('r1')
  })

  const refusal =
    (body: string | null, status = 403, type = 'text/plain') =>
    () =>
      new Response(body, { status, headers: { 'content-type': type } })
  const json = (body: object, status = 403) => refusal(JSON.stringify(body), status, 'application/json')
  it.each<[string, ProxyOptions['authorize'], status: number, told: unknown]>([
    ['false', () => false, 401, expect.any(String)],
    ['without a body', refusal(null), 403, 'The proxy refused the order. Nothing was sent.'],
    ['with text', refusal('Blocked.'), 403, 'Blocked. Nothing was sent.'],
    ['that would mean doubt', refusal('Wait.', 409), 403, 'Wait. Nothing was sent.'],
    ['with JSON that would mean doubt', json({ message: 'Wait.' }, 409), 403, 'Wait.'],
    ['with JSON of another form', json({ code: null }), 403, 'REFUSED'],
    ['with a code of a conflict', json({ code: 'IDEMPOTENCY_CONFLICT' }), 403, 'REFUSED'],
  ])('what authorize refuses is reported as not charged: response %s', async (_, authorize, status, told) => {
    const { page, lab, sandbox } = shop({}, authorize)
    const error = await failure(page().orders.create(order('r1')))
    expect(error).toMatchObject({ status, charged: 'no' })
    expect([error.serverMessage, error.serverCode]).toContainEqual(told)
    expect(lab.posts).toHaveLength(0)
    sandbox.expectCharges(0)
  })

  it('a refusal by authorize keeps its headers, and a refused read its body', async () => {
    const headers = { 'content-type': 'text/plain', 'www-authenticate': 'Session', 'set-cookie': 'a=b' }
    const proxy = createProxy({
      baseUrl: 'https://api.example.com',
      apiKey: 'key-of-nobody-at-all',
      authorize: () => new Response('Sign in.', { status: 401, headers }),
    })
    const order = await proxy(new Request('https://shop.example/api/v1/orders', { method: 'POST' }))
    expect(Object.fromEntries(order.headers)).toEqual({
      ...headers,
      'cache-control': 'no-store',
      'content-type': 'application/json',
    })
    expect(await order.json()).toEqual({ code: 'REFUSED', message: 'Sign in. Nothing was sent.' })
    const read = await proxy(new Request('https://shop.example/api/v1/balance'))
    expect(await read.text()).toBe('Sign in.')
  })

  it.each(['page', 'service'] as const)(
    'behind the proxy, a reloaded page finishes an order in doubt, lost on the way to the %s',
    async (where) => {
      const here = shop()
      await leaveInDoubt(here, where)
      expect(await here.page().orders.recover()).toMatchObject({ created: 1 })
      here.sandbox.expectChargedOnce('r1')
    },
  )

  it.each([
    ['page', 'recover'],
    ['page', 'create'],
    ['service', 'recover'],
    ['service', 'create'],
  ] as const)(
    'an order in doubt is never repeated with another API key: lost on the way to the %s, then %s()',
    async (where, how) => {
      const here = shop()
      await leaveInDoubt(here, where)
      here.rotate()
      const { orders } = here.page()
      if (how === 'create')
        expect(await failure(orders.create(order('r1')))).toMatchObject({ charged: 'unknown' })
      else expect(await orders.recover()).toMatchObject({ created: 0 })
      here.sandbox.expectChargedOnce('r1')
      // The page knows of the other key now, sends nothing, and finds the order in the list.
      expect(await orders.recover()).toMatchObject({ created: 1 })
      expect(here.lab.posts).toHaveLength(1)
    },
  )

  it.each(['within one call', 'by a client of withOptions()'])(
    'an order in doubt is never repeated with another API key %s',
    async (how) => {
      const here = shop()
      const client = here.page({ hooks: { onRetry: here.rotate } })
      if (how === 'within one call') here.lab.fault({ type: 'commitThenDrop' })
      else await client.balance.retrieve().then(here.lose)
      const { orders } = how === 'within one call' ? client : client.withOptions({ maxRetries: 3 })
      expect(await failure(orders.create(order('r1')))).toMatchObject({ charged: 'unknown' })
      here.sandbox.expectChargedOnce('r1')
      expect(here.lab.posts).toHaveLength(1)
    },
  )

  it('the client records the key of the first response before it sends again', async () => {
    const here = shop()
    here.lab.fault({ type: 'commitThenDrop' })
    const tags: unknown[] = []
    const client = here.page({
      hooks: {
        onRequest: async () => {
          tags.push((await here.lab.record('ref:r1'))?.apiKeyTag)
        },
      },
    })
    await client.orders.create(order('r1'))
    here.sandbox.expectChargedOnce('r1')
    expect(tags).toEqual(['none', expect.stringMatching(/^p/)])
  })

  it('the client continues with a new API key if nothing was in doubt', async () => {
    const here = shop()
    const client = here.page()
    await client.balance.retrieve()
    here.rotate()
    expect((await client.orders.create(order('r1'))).id).toBe(here.lab.charged())
    expect(here.lab.posts).toHaveLength(1)
  })

  it('the client repeats an order with any API key if the service shares keys between them', async () => {
    const here = shop({ behaviour: { keyScope: 'customer' } })
    await leaveInDoubt(here, 'page')
    here.rotate()
    const recovered = await here.page({ idempotencyScope: 'customer' }).orders.recover()
    expect(recovered).toMatchObject({ created: 1 })
    here.sandbox.expectChargedOnce('r1')
  })

  it('an order sent before the first response named a key is finished as without a tag', async () => {
    const here = shop()
    here.lose()
    expect((await here.page().orders.create(order('r1'))).id).toBe(here.lab.charged())
    expect(await here.lab.record('ref:r1')).toMatchObject({ apiKeyTag: expect.stringMatching(/^p/) })
  })

  it("the client reads the list if the first attempt's key was never named and the proxy names one now", async () => {
    const here = shop()
    here.lose()
    await failure(here.page({ maxRetries: 0 }).orders.create(order('r1')))
    expect(await here.lab.record('ref:r1')).toMatchObject({ apiKeyTag: 'none' })
    here.rotate()
    const client = here.page()
    await client.balance.retrieve()
    expect(await client.orders.recover()).toMatchObject({ created: 1 })
    here.sandbox.expectChargedOnce('r1')
    expect(here.lab.posts).toHaveLength(1)
  })

  it.each([
    ['the same API key, which charges nothing more', false, 1],
    ['another API key, which may charge again: so a page reads something first', true, 2],
  ])('without a tag of the proxy, an order of an unnamed key repeats: %s', async (_, rotated, charges) => {
    const here = shop()
    here.lose()
    await failure(here.page({ maxRetries: 0 }).orders.create(order('r1')))
    if (rotated) here.rotate()
    await here.page().orders.recover()
    expect(here.lab.posts).toHaveLength(2)
    here.sandbox.expectCharges(charges)
  })
})

it('behind a proxy, a new page sends a refused order under its next key', async () => {
  const { lab, fetch, page } = shop()
  const own = { transport: { ...kyTransport(fetch), sendsOnce: () => true }, fetch: undefined, maxRetries: 0 }
  lab.drain()
  expect(await failure(page(own).orders.create(order('r1')))).toMatchObject({ code: 'payment_required' })
  lab.topUp()
  lab.runtime.jump(30 * 60_000)
  expect((await page(own).orders.create(order('r1'))).id).toBe(lab.charged())
})
