import { createSandbox, type FaultAction, type FaultRule, type Sandbox } from 'customer-ordering-sdk/sandbox'
import { describe, expect, test } from 'vitest'
import { errorOf } from '../support/calls.ts'
import { caller, orderInit, scene, settled, validBody } from './caller.ts'

const withFault = (action: FaultAction, rule: Omit<FaultRule, 'action'> = {}) =>
  scene({ faults: [{ ...rule, action }] })

const request = (sandbox: Sandbox, signal: AbortSignal | null = null) =>
  sandbox.fetch(`${sandbox.baseUrl}/v1/orders`, { ...orderInit(sandbox.apiKey), signal })

test('the log names the faults that acted on each request, and no others', async () => {
  const { sandbox, api } = scene({
    faults: [
      { action: { type: 'forgetKeys' } },
      { match: { operation: 'createOrder' }, action: { type: 'commitThenDrop' } },
      { match: { operation: 'createOrder' }, times: 'always', action: { type: 'inProgress' } },
    ],
  })
  await errorOf(api.order('k'))
  await api.order('k')
  await api.get('/v1/balance')
  const faults = sandbox.requests.map((request) => request.faults)
  expect(faults).toEqual([['forgetKeys', 'commitThenDrop'], ['inProgress'], []])
})

test.each([true, false])('otherOrder returns another order of the customer, commit %s', async (commit) => {
  const { sandbox, api } = scene()
  const other = await api.order('other')
  sandbox.faults.add({ times: 2, action: { type: 'otherOrder', commit } })
  expect(await api.order('k')).toMatchObject({ status: 201, body: other.body })
  sandbox.expectCharges(commit ? 2 : 1)
  expect(await api.get('/v1/balance')).toMatchObject({ status: 200 })
  expect((await api.order('k')).body).not.toEqual(other.body)
})

test('otherOrder changes nothing if no other order exists', async () => {
  const sandbox = createSandbox({ faults: [{ action: { type: 'otherOrder', commit: false } }] })
  expect(await caller(sandbox).order('k')).toMatchObject({ status: 201 })
  sandbox.expectChargedOnce('k')
})

test.each([
  ['before', 'the service knows nothing of the request until then', 201, 0],
  ['during', 'the order is registered as in progress', 409, 0],
  ['after', 'the charge is made, and the response waits', 201, 1],
] as const)('delay %s: %s', async (when, _, meanwhile, charges) => {
  const { clock, sandbox, api } = withFault({ type: 'delay', ms: 500, when })
  const late = request(sandbox)
  await settled()
  sandbox.expectCharges(charges)
  expect(await api.order('k')).toMatchObject({ status: meanwhile })
  clock.advance(500)
  expect((await late).status).toBe(201)
  sandbox.expectChargedOnce('k')
})

test("a caller's abort does not stop the server, which charges later", async () => {
  const { clock, sandbox } = withFault({ type: 'delay', ms: 500 })
  const controller = new AbortController()
  const work = errorOf(request(sandbox, controller.signal))
  await settled()
  controller.abort(new Error('timeout'))
  expect(await work).toMatchObject({ message: 'timeout' })
  sandbox.expectCharges(0)
  clock.advance(500)
  await settled()
  sandbox.expectChargedOnce('k')
})

test.each([200, 503])('delays apply to a response of %i in every phase', async (status) => {
  const { clock, sandbox, api } = withFault({ type: 'delay', ms: 1, when: 'during' })
  sandbox.faults.add({ action: { type: 'delay', ms: 2, when: 'before' } })
  if (status !== 200) sandbox.faults.add({ action: { type: 'status', status } })
  const work = api.get('/v1/balance')
  await settled()
  clock.advance(2)
  await settled()
  expect(sandbox.requests[0]?.response).toBeNull()
  clock.advance(1)
  expect(await work).toMatchObject({ status })
})

describe('made-up answers', () => {
  test.each([true, false])('status replaces the response, commit %s', async (commit) => {
    const { sandbox, api } = withFault({
      type: 'status',
      status: 502,
      commit,
      html: true,
      headers: { 'X-Proxy': 'p1', 'retry-after': 'soon' },
    })
    const { status, headers, body } = await api.order('k')
    expect(status).toBe(502)
    expect(headers.get('content-type')).toBe('text/html')
    expect([headers.get('x-proxy'), headers.get('retry-after')]).toEqual(['p1', 'soon'])
    expect(body).toContain('<h1>502</h1>')
    sandbox.expectCharges(commit ? 1 : 0)
    expect(await api.order('k')).toMatchObject({ status: 201 })
    sandbox.expectCharges(1)
  })

  type StatusAction = Extract<FaultAction, { type: 'status' }>
  test.each<[string, Omit<StatusAction, 'type'>, body: unknown]>([
    ['a JSON body', { status: 409, json: { error: { code: 'ODD' } } }, { error: { code: 'ODD' } }],
    ['a text body', { status: 503, text: 'maintenance' }, 'maintenance'],
    ['any code', { status: 409, code: 'TEAPOT' }, expect.objectContaining({ code: 'TEAPOT' })],
    ['a code of its own', { status: 418 }, expect.objectContaining({ code: 'HTTP_418' })],
    ['no body: 204', { status: 204 }, ''],
    ['no body: 205', { status: 205 }, ''],
    ['no body: 304', { status: 304 }, ''],
  ])('the fault `status` responds with %s', async (_, action, body) => {
    const { api } = withFault({ type: 'status', ...action })
    expect(await api.order('k')).toMatchObject({ status: action.status, body })
  })

  test('inProgress responds as often as configured, whether committed or not', async () => {
    const { sandbox, api } = withFault({ type: 'inProgress', commit: true }, { times: 2 })
    expect(await api.statuses('k', 'k', 'k')).toEqual([409, 409, 201])
    sandbox.expectChargedOnce('k')
    const other = withFault({ type: 'inProgress' })
    expect((await other.api.order('k')).body).toMatchObject({ code: 'IDEMPOTENCY_IN_PROGRESS' })
    other.sandbox.expectCharges(0)
  })

  test('bytes replaces the body of the real response', async () => {
    const { sandbox, api } = withFault({ type: 'bytes', body: '{"id":', contentType: 'text/x-odd' })
    const { status, headers, body } = await api.order('k')
    expect([status, headers.get('content-type'), body]).toEqual([201, 'text/x-odd', '{"id":'])
    sandbox.expectCharges(1)
  })

  test('bytes can have any status and leave the request unprocessed', async () => {
    const { sandbox, api } = withFault({ type: 'bytes', body: 'x', status: 201, commit: false })
    await expect(api.order('k')).rejects.toThrow('JSON')
    sandbox.expectCharges(0)
    const json = withFault({ type: 'bytes', body: '1', commit: false })
    expect(await json.api.order('k')).toMatchObject({ status: 200, body: 1 })
  })
})

test('transformBody patches fields: wrong types, missing ids, unsafe amounts', async () => {
  const { api } = withFault({
    type: 'transformBody',
    patch: { id: null, amount: 2 ** 60, metadata: { a: [1] }, no: { such: { place: 1 } } },
  })
  const { body } = await api.order('k')
  expect(body).not.toHaveProperty('id')
  expect(body).toMatchObject({
    amount: 2 ** 60,
    metadata: { a: [1], externalOrderId: 'shop-1' },
    no: { such: { place: 1 } },
  })
})

test('transformBody patches no body that is not an object', async () => {
  const { sandbox, api } = withFault({ type: 'transformBody', patch: { id: 'x' } })
  sandbox.configure('minimal-answers')
  expect((await api.get('/v1/orders')).body).toEqual([])
})

test('transformBody runs a function, which may return the text to send', async () => {
  const { api } = withFault({
    type: 'transformBody',
    transform: (body, { path }) => ({ ...(body as object), path }),
  })
  expect((await api.get('/v1/balance')).body).toMatchObject({ amount: 1_000_000, path: '/v1/balance' })
  const raw = withFault({ type: 'transformBody', transform: () => '{"amount":9007199254740993}' })
  const response = await raw.sandbox.fetch(`${raw.sandbox.baseUrl}/v1/balance`)
  expect(await response.text()).toBe('{"amount":9007199254740993}')
})

test('transformBody does not change stored data', async () => {
  const { api } = withFault({ type: 'transformBody', patch: { metadata: null } })
  await api.order('k')
  expect((await api.order('k')).body).toMatchObject({ metadata: { externalOrderId: 'shop-1' } })
})

test.each([
  ['throws', () => JSON.parse('typo'), 'Unexpected token'],
  ['returns a BigInt, which JSON lacks,', () => 1n, 'BigInt'],
])('a transformBody that %s leads to a 500, and the charge is logged', async (_, transform, reason) => {
  const { sandbox, api } = withFault({ type: 'transformBody', transform })
  const { status, body } = await api.order('k')
  const ending = '\\(the ledger shows whether the request was charged\\)$'
  const message = new RegExp(`^The sandbox failed: .*${reason}.* ${ending}`)
  expect([status, body]).toMatchObject([500, { message: expect.stringMatching(message) }])
  expect(sandbox.requests).toMatchObject([{ status: 500, charged: true }])
  sandbox.expectChargedOnce('k')
})

test('forgetKeys turns a replay into a second order', async () => {
  const { sandbox, api } = withFault({ type: 'forgetKeys' }, { skip: 1 })
  await api.order('k')
  await api.order('k')
  sandbox.expectCharges(2)
})

describe('faults of lists', () => {
  const idsOf = (body: unknown) => (body as { data: { id: string }[] }).data.map(({ id }) => id).join('')
  const listed = (action: FaultAction, rule: Omit<FaultRule, 'action'> = {}) => {
    const { sandbox, api } = withFault(action, { times: Infinity, ...rule })
    for (const id of ['e', 'd', 'c', 'b', 'a']) sandbox.addOrder({ id })
    return async (query: string) => idsOf((await api.get(`/v1/orders?${query}`)).body)
  }

  test('shortPage omits rows at the end of a page', async () => {
    const list = listed({ type: 'shortPage', fewer: 2 }, { times: 1 })
    expect([await list('limit=4'), await list('limit=4&offset=2')]).toEqual(['ab', 'cde'])
  })

  test.each([
    ['dropFirst', 'bc', 'de'],
    ['duplicateFirst', 'aa', 'bc'],
    ['reverse', 'ed', 'cb'],
  ] as const)('mutateList %s shifts rows', async (change, first, second) => {
    const list = listed({ type: 'mutateList', change })
    expect([await list('limit=2'), await list('limit=2&offset=2')]).toEqual([first, second])
  })

  test('mutateList shuffles by seed', async () => {
    const list = listed({ type: 'mutateList', change: 'shuffle' })
    const again = listed({ type: 'mutateList', change: 'shuffle' })
    const shuffled = await list('')
    expect([...shuffled].sort().join('')).toBe('abcde')
    expect(await again('')).toBe(shuffled)
  })

  test('mutateList with skip changes the list between pages', async () => {
    const list = listed(
      { type: 'mutateList', change: (rows) => [{ id: '!', status: 'new', amount: 1 }, ...rows] },
      { skip: 1 },
    )
    expect([await list('limit=2'), await list('limit=2&offset=2')]).toEqual(['ab', 'bc'])
  })

  test('changes of several rules accumulate', async () => {
    const { sandbox, api } = withFault({ type: 'mutateList', change: 'reverse' })
    sandbox.faults.add({ action: { type: 'mutateList', change: 'dropFirst' } })
    sandbox.faults.add({ action: { type: 'shortPage' } })
    for (const id of ['c', 'b', 'a']) sandbox.addOrder({ id })
    expect(idsOf((await api.get('/v1/orders?limit=2')).body)).toBe('b')
  })
})

describe('rules', () => {
  const gone = { type: 'status', status: 500 } as const
  const isOfShop2 = (body: unknown): boolean => JSON.stringify(body).includes('shop-2')

  test.each([
    ['operation', { operation: 'listServices' }],
    ['method', { method: 'GET', path: '/v1/services' }],
    ['path as text', { path: '/v1/serv' }],
    ['path as pattern', { path: /serv.ces$/g }],
    ['when', { when: ({ query }) => query.get('limit') === '1' }],
  ] satisfies [string, FaultRule['match']][])('rules match by %s', async (_, match) => {
    const { api } = withFault(gone, { match, times: 'always' })
    expect(await api.get('/v1/balance')).toMatchObject({ status: 200 })
    expect(await api.get('/v1/services?limit=1')).toMatchObject({ status: 500 })
    expect(await api.get('/v1/services?limit=1')).toMatchObject({ status: 500 })
  })

  test.each([
    ['externalOrderId', { externalOrderId: 'shop-2' }],
    ['idempotencyKey', { idempotencyKey: 'k2' }],
    ['when', { when: ({ body, apiKeyId }) => isOfShop2(body) && apiKeyId === 'key_personal' }],
  ] satisfies [string, FaultRule['match']][])('rules match orders by %s', async (_, match) => {
    const { api } = withFault(gone, { match })
    expect(await api.order('k1')).toMatchObject({ status: 201 })
    const second = { ...validBody, metadata: { externalOrderId: 'shop-2' } }
    expect(await api.order('k2', second)).toMatchObject({ status: 500 })
  })

  test('rules skip requests, then act the configured number of times', async () => {
    const { api } = withFault(gone, { skip: 1, times: 2 })
    const statuses = []
    for (let i = 0; i < 4; i++) statuses.push((await api.get('/v1/balance')).status)
    expect(statuses).toEqual([200, 500, 500, 200])
  })

  test('rules act with a probability, drawn from the seed', async () => {
    const run = async (seed: number) => {
      const { api } = scene({ seed, faults: [{ times: Infinity, probability: 0.5, action: gone }] })
      let pattern = ''
      for (let i = 0; i < 64; i++) pattern += (await api.get('/v1/balance')).status === 500 ? 'x' : '.'
      return pattern
    }
    const first = await run(7)
    expect(await run(7)).toBe(first)
    expect(await run(8)).not.toBe(first)
    const hits = first.split('x').length - 1
    expect(hits).toBeGreaterThan(16)
    expect(hits).toBeLessThan(48)
  })

  test('rules can be removed one by one or all together', async () => {
    const { sandbox, api } = withFault(gone, { times: Infinity })
    const remove = sandbox.faults.add({ action: gone })
    expect(sandbox.faults.pending()).toHaveLength(2)
    remove()
    expect(sandbox.faults.pending()).toHaveLength(1)
    sandbox.faults.clear()
    expect(await api.get('/v1/balance')).toMatchObject({ status: 200 })
  })

  test('rules apply to unknown paths, too', async () => {
    expect(await withFault(gone).api.get('/nowhere')).toMatchObject({ status: 500 })
  })
})
