import { describe, expect, it } from 'vitest'
import { ConfigurationError } from '../../../src/errors.ts'
import { Reporter, type SettledEvent } from '../../../src/hooks.ts'
import type { CallSettings, Credentials } from '../../../src/http/call.ts'
import type { AttemptRequest, AttemptResult, Transport } from '../../../src/http/transport.ts'
import { readIntent } from '../../../src/idempotency/intent.ts'
import { type FoundRecord, Journal, type RecordContent } from '../../../src/idempotency/journal.ts'
import { forgottenRow } from '../../../src/idempotency/record.ts'
import { type OrderContext, tagOf } from '../../../src/resources/order-context.ts'
import { type RecoverSettings, type RecoveryOutcome, recover } from '../../../src/resources/recover.ts'
import { unsentContent } from '../../../src/resources/unsent.ts'
import type { Order } from '../../../src/schemas/order.ts'
import { MemoryStore } from '../../../src/stores/memory.ts'
import { orderContext, recordOf, remember, storedRecords } from '../../support/order-context.ts'
import { type FakeRuntime, fakeRuntime } from '../../support/runtime.ts'

const API_KEY = 'api-key-of-this-shop'
const MINUTE = 60_000
const WINDOW = 20 * MINUTE
const NOW = 1_700_000_000_000

const ORDER = {
  id: 'o1',
  serviceId: 's',
  target: 't',
  quantity: 1,
  amount: 5,
  currency: 'EUR',
  status: 'pending',
}

const answer = (status: number, body: unknown = {}): AttemptResult => ({
  kind: 'answer',
  status,
  headers: new Headers(),
  text: typeof body === 'string' ? body : JSON.stringify(body),
})
const problem = (status: number, code = 'NO'): AttemptResult => answer(status, { code, message: 'no' })
const CREATED = answer(201, ORDER)
const UNREADABLE = answer(201, '')
const LOST: AttemptResult = { kind: 'failed', unsent: false, closed: false, detail: { name: 'TypeError' } }

interface Place {
  readonly context: OrderContext
  readonly runtime: FakeRuntime
  readonly store: MemoryStore
  readonly settled: SettledEvent[]
  /** What was asked: the reference of an order that is sent, else path and query. */
  readonly asked: string[]
}

/** A service that answers so to the order with a reference, or to a path. */
function placeWith(
  respond: (asked: string, place: Place) => AttemptResult | Promise<AttemptResult>,
  given: { readonly now?: number; readonly credentials?: Credentials } = {},
): Place {
  const runtime = fakeRuntime({ auto: true, now: given.now ?? NOW })
  const store = new MemoryStore()
  const settled: SettledEvent[] = []
  const asked: string[] = []
  const transport: Transport = async (request) => {
    const what = askedBy(request)
    asked.push(what)
    return await respond(what, place)
  }
  const context = orderContext(
    {
      journal: new Journal({ store, scope: 's', codec: undefined, runtime }),
      safeRetryWindow: WINDOW,
      retention: { created: 365 * 24 * 60 * MINUTE, rejected: 365 * 24 * 60 * MINUTE },
    },
    {
      runtime,
      transport,
      credentials: given.credentials ?? { rotates: false, get: () => API_KEY },
      reporter: new Reporter({ onSettled: (event) => void settled.push(event) }, undefined, 'off'),
    },
  )
  const place: Place = { context, runtime, store, settled, asked }
  return place
}

function askedBy({ body, url }: AttemptRequest): string {
  if (body === undefined) return url.slice('https://api.example.com'.length)
  const request: { metadata: { externalOrderId: string } } = JSON.parse(body)
  return request.metadata.externalOrderId
}

/** An order that waits to be sent. */
async function enqueue(
  { context }: Place,
  reference: string,
  changes: Partial<RecordContent> = {},
): Promise<FoundRecord> {
  const request = { serviceId: 's', target: 't', quantity: 1, metadata: { externalOrderId: reference } }
  const intent = readIntent(context.connection.runtime.deriveId, request, {})
  const content = unsentContent(context, intent, undefined, { moved: false })
  return await remember(context, { ...content, ...changes })
}

/** An order that a call has left open, in doubt. */
async function leave(
  place: Place,
  reference: string,
  changes: Partial<RecordContent> = {},
): Promise<FoundRecord> {
  const queued = await enqueue(place, reference)
  const { version: _version, createdAt: _created, updatedAt: _updated, ...content } = queued.record
  const left: RecordContent = {
    ...content,
    ambiguous: true,
    attempts: 1,
    firstSentAt: place.runtime.now(),
    apiKeyTag: tagOf(place.context, content.key, API_KEY),
    ...changes,
  }
  return await remember(place.context, left, queued)
}

type Given = Partial<Omit<RecoverSettings<Order>, 'settings'>> & {
  readonly settings?: Partial<CallSettings>
}

const start = (
  { context }: Place,
  { settings, ...options }: Given = {},
): AsyncGenerator<RecoveryOutcome, void, undefined> =>
  recover(context, {
    settings: {
      signal: undefined,
      timeout: 30_000,
      totalTimeout: 2 * MINUTE,
      maxRetries: 4,
      headers: {},
      ...settings,
    },
    replay: 'safe',
    takeOver: false,
    finish: async (order) => order,
    checkOpen: () => {},
    ...options,
  })

async function recovered(place: Place, given: Given = {}): Promise<RecoveryOutcome[]> {
  const outcomes: RecoveryOutcome[] = []
  for await (const outcome of start(place, given)) outcomes.push(outcome)
  return outcomes
}

const textsOf = (outcomes: readonly RecoveryOutcome[]): string[] =>
  outcomes.map(({ outcome, record, reason, error }) =>
    [record.externalOrderId, outcome, reason, error?.code].filter(Boolean).join(' '),
  )

describe('recover()', () => {
  it('goes on with everything that is open, in the order in which the windows end', async () => {
    const place = placeWith(() => CREATED)
    // First sent long after it was begun.
    await leave(place, 'r2', { firstSentAt: NOW - 2 * MINUTE })
    await leave(place, 'r1', { firstSentAt: NOW - 3 * MINUTE })
    place.runtime.jump(MINUTE)
    await leave(place, 'r4')
    await leave(place, 'r3', { firstSentAt: NOW })
    await recovered(place)
    expect(place.asked).toEqual(['r1', 'r2', 'r3', 'r4'])
  })

  it('leaves those for last whose window is over, and those before them that were never sent, oldest first', async () => {
    // Also where the clock has just begun, in 1970.
    for (const now of [NOW, WINDOW]) {
      const place = placeWith(() => CREATED, { now })
      await enqueue(place, 'q1')
      place.runtime.jump(1)
      await enqueue(place, 'q2')
      await leave(place, 'past', { firstSentAt: now - WINDOW })
      await leave(place, 'ending', { firstSentAt: now + 1 - WINDOW })
      await leave(place, 'fresh')
      await recovered(place, { replay: 'all' })
      expect(place.asked).toEqual(['ending', 'fresh', 'q1', 'q2', 'past'])
    }
  })

  it('asks once for each, also where another API key might help', async () => {
    const apiKeys = [API_KEY, API_KEY, API_KEY]
    const credentials = { rotates: true, get: () => apiKeys.shift() ?? API_KEY }
    const place = placeWith(() => answer(401), { credentials })
    await leave(place, 'r1')
    expect(textsOf(await recovered(place))).toEqual(['r1 still_open authentication'])
    expect(place.asked).toEqual(['r1'])
  })

  it('works without an API key, where a proxy adds it', async () => {
    const place = placeWith((asked) => (asked === 'r1' ? CREATED : answer(200, [])), {
      credentials: { rotates: false, get: () => null },
    })
    const { record } = await enqueue(place, 'r1')
    await leave(place, 'r2', { apiKeyTag: 'of some API key' })
    expect(textsOf(await recovered(place))).toEqual(['r1 created', 'r2 needs_attention api_key_changed'])
    expect(await recordOf(place.context, 'ref:r1')).toMatchObject({
      apiKeyTag: tagOf(place.context, record.key, null),
    })
  })

  it('passes over what was settled and removed, or forgotten, by the time of its turn', async () => {
    const place = placeWith(() => CREATED)
    const gone = await leave(place, 'gone')
    const forgotten = await leave(place, 'forgotten')
    await leave(place, 'r3', { firstSentAt: NOW + 1 })
    const { get } = place.store
    place.store.get = async (scope, id) => {
      const row = await get.call(place.store, scope, id)
      if (id === gone.id) return undefined
      return id === forgotten.id && row !== undefined ? forgottenRow(row, NOW) : row
    }
    expect(textsOf(await recovered(place))).toEqual(['r3 created'])
  })

  it('passes over a row that was forgotten while it was listed', async () => {
    const place = placeWith(() => CREATED)
    const { row } = await leave(place, 'r1')
    place.store.listOpen = async () => ({ rows: [forgottenRow(row, NOW)] })
    expect(await recovered(place)).toEqual([])
  })

  it('removes what is older than it is kept, afterwards', async () => {
    const place = placeWith(() => CREATED)
    let pruned = 0
    place.store.prune = async () => {
      pruned++
      return 0
    }
    const walk = start(place)
    expect(pruned).toBe(0)
    await walk.next()
    await place.runtime.settle()
    expect(pruned).toBe(1)
  })
})

describe('a live call of this process', () => {
  it('keeps its order, although nothing of it could be repeated, and nobody asks for an API key', async () => {
    let asked = 0
    const credentials = {
      rotates: true,
      get: () => {
        asked++
        return API_KEY
      },
    }
    const place = placeWith(() => CREATED, { credentials })
    const { id, record } = await leave(place, 'r1', { hold: 'aborted' })
    place.context.live.enter(id, { fingerprint: record.fingerprint, idempotencyKey: record.key, request: {} })
    expect(textsOf(await recovered(place, { takeOver: true }))).toEqual(['r1 in_progress'])
    expect(asked).toBe(0)
  })

  it('keeps its order also where it began while the API key was awaited', async () => {
    const place = placeWith(() => CREATED, {
      credentials: {
        rotates: true,
        get: async () => {
          const { id, record } = left
          place.context.live.enter(id, {
            fingerprint: record.fingerprint,
            idempotencyKey: record.key,
            request: {},
          })
          return API_KEY
        },
      },
    })
    const left = await leave(place, 'r1')
    expect(textsOf(await recovered(place))).toEqual(['r1 in_progress'])
    expect(place.asked).toEqual([])
  })
})

describe('recovery that is ended', () => {
  const closed = new ConfigurationError('closed', { charged: 'unknown' })

  it('by the client’s close, ends before the next row and before the next order', async () => {
    for (const [last, sent] of [
      [1, []],
      [2, []],
      [3, ['r1']],
    ] as const) {
      const place = placeWith(() => CREATED)
      await leave(place, 'r1')
      await leave(place, 'r2', { firstSentAt: NOW + 1 })
      let checks = 0
      const checkOpen = (): void => {
        if (++checks > last) throw closed
      }
      await expect(recovered(place, { checkOpen })).rejects.toBe(closed)
      expect(place.asked).toEqual(sent)
    }
  })

  it('by its signal, ends before it reads a row', async () => {
    const place = placeWith(() => CREATED)
    await leave(place, 'r1')
    let read = 0
    const { listOpen } = place.store
    place.store.listOpen = async (...of) => {
      const page = await listOpen.apply(place.store, of)
      return {
        ...page,
        rows: page.rows.map((row) => ({
          ...row,
          get data() {
            read++
            return row.data
          },
        })),
      }
    }
    const reason = new Error('enough')
    const ending = recovered(place, { settings: { signal: AbortSignal.abort(reason) } })
    await expect(ending).rejects.toMatchObject({
      code: 'aborted',
      charged: 'unknown',
      attempts: 0,
      cause: reason,
    })
    expect(read).toBe(0)
  })

  it('by its signal, ends between two orders', async () => {
    const controller = new AbortController()
    const place = placeWith(() => CREATED)
    await leave(place, 'r1')
    await leave(place, 'r2', { firstSentAt: NOW + 1 })
    let loads = 0
    const walk = start(place, { settings: { signal: controller.signal } })
    expect((await walk.next()).value).toMatchObject({ outcome: 'created' })
    const { get } = place.store
    place.store.get = (...of) => {
      loads++
      return get.apply(place.store, of)
    }
    controller.abort()
    await expect(walk.next()).rejects.toMatchObject({ code: 'aborted', charged: 'unknown' })
    expect(loads).toBe(0)
  })

  it('by its signal, ends while it waits for the store or for the API key', async () => {
    for (const slow of ['store', 'API key']) {
      const controller = new AbortController()
      const waits = <T>(): Promise<T> => {
        controller.abort()
        return new Promise(() => {})
      }
      const credentials = { rotates: true, get: () => (slow === 'store' ? API_KEY : waits<string>()) }
      const place = placeWith(() => CREATED, { credentials })
      await leave(place, 'r1')
      if (slow === 'store') place.store.get = () => waits()
      const ending = recovered(place, { settings: { signal: controller.signal } })
      await expect(ending).rejects.toMatchObject({ code: 'aborted', charged: 'unknown', attempts: 0 })
      expect(place.asked).toEqual([])
    }
  })

  it('by a mistake, tells it as it is', async () => {
    const bug = new TypeError('a mistake of ours')
    const place = placeWith(() => Promise.reject(bug))
    await leave(place, 'r1')
    await expect(recovered(place)).rejects.toBe(bug)
  })
})

describe('trouble with one order', () => {
  it('that is the store’s, is everybody’s: recovery fails', async () => {
    const place = placeWith(() => CREATED)
    await leave(place, 'r1')
    place.store.get = () => Promise.reject(new Error('gone'))
    await expect(recovered(place)).rejects.toMatchObject({ code: 'store', charged: 'unknown' })

    place.store.get = () => new Promise(() => {})
    await expect(recovered(place, { settings: { totalTimeout: 1000 } })).rejects.toMatchObject({
      code: 'timeout',
      charged: 'unknown',
      attempts: 0,
      message: expect.stringContaining('orders.recover'),
    })
  })

  it('that the API key does not come, leaves it open and names its key', async () => {
    for (const [charged, changes] of [
      ['unknown', {}],
      ['yes', { state: 'created', ambiguous: false }],
    ] as const) {
      const credentials = { rotates: true, get: () => new Promise<string>(() => {}) }
      const place = placeWith(() => CREATED, { credentials })
      const { record } = await leave(place, 'r1', changes)
      const facts = { charged, attempts: 0, idempotencyKey: record.key, externalOrderId: 'r1' }
      expect(await recovered(place)).toMatchObject([
        { outcome: 'still_open', error: { code: 'timeout', ...facts } },
      ])
      credentials.get = () => Promise.reject(new Error('the vault is down'))
      expect(await recovered(place)).toMatchObject([
        { outcome: 'still_open', error: { code: 'configuration', ...facts } },
      ])
    }
  })

  it('that it was settled elsewhere before it could be asked for, is told as what it is', async () => {
    const place = placeWith(() => CREATED, {
      credentials: {
        rotates: true,
        get: async () => {
          const content = { ...left.record, state: 'created', readable: true, order: ORDER } as const
          await remember(place.context, content, left)
          throw new Error('the vault is down')
        },
      },
    })
    const left = await leave(place, 'r1')
    expect(await recovered(place)).toMatchObject([{ outcome: 'created', order: ORDER }])
  })

  it('that the store does not confirm the claim, leaves it open with what is known', async () => {
    const place = placeWith(() => CREATED)
    const { record } = await leave(place, 'r1')
    const gone = new Error('gone')
    place.store.update = () => Promise.reject(gone)
    const [outcome] = await recovered(place)
    expect(outcome).toMatchObject({
      outcome: 'still_open',
      record: { version: record.version },
      error: {
        code: 'store',
        message: 'The store did not confirm that recovery may go on with this order.',
        charged: 'unknown',
        idempotencyKey: record.key,
        externalOrderId: 'r1',
        cause: gone,
      },
    })
    expect(place.asked).toEqual([])
  })
})

describe('three failures in a row to reach the service', () => {
  const REFERENCES = ['r1', 'r2', 'r3', 'r4', 'r5', 'r6', 'r7', 'r8']
  const walk = async (
    answers: Readonly<Record<string, AttemptResult>>,
    first: (place: Place) => Promise<unknown> = async () => {},
  ): Promise<Place & { readonly texts: string[] }> => {
    const place = placeWith((asked) => answers[asked] ?? answer(200, { orders: [] }))
    let age = 100
    for (const reference of REFERENCES)
      if (reference in answers) await leave(place, reference, { firstSentAt: NOW - age-- })
    await first(place)
    return { ...place, texts: textsOf(await recovered(place)) }
  }

  it.each<[string, AttemptResult]>([
    ['a broken connection', LOST],
    ['no answer in time', { kind: 'timeout' }],
  ])('end it: %s', async (_what, failure) => {
    const { asked } = await walk({ r1: failure, r2: failure, r3: failure, r4: CREATED })
    expect(asked).toEqual(['r1', 'r2', 'r3'])
  })

  it.each<[string, AttemptResult]>([
    ['an order', CREATED],
    ['an error status', answer(503)],
    ['a refusal', problem(402)],
  ])('are counted anew after %s', async (_what, between) => {
    const { asked } = await walk({
      r1: LOST,
      r2: LOST,
      r3: between,
      r4: LOST,
      r5: LOST,
      r6: LOST,
      r7: CREATED,
    })
    expect(asked).toEqual(['r1', 'r2', 'r3', 'r4', 'r5', 'r6'])
  })

  it('are counted on over an order for which the service was not asked', async () => {
    const { asked, texts } = await walk(
      { r1: LOST, r2: LOST, r3: CREATED, r4: LOST, r5: CREATED },
      async (place) => {
        await leave(place, 'r0', { firstSentAt: NOW - 200 })
        const busy = { firstSentAt: NOW - 98, busyUntil: NOW + 60 * MINUTE }
        for (const found of await storedRecords(place.context))
          if (found.record.externalOrderId === 'r3')
            await remember(place.context, { ...found.record, ...busy }, found)
      },
    )
    expect(asked).toEqual(['r0', 'r1', 'r2', 'r4'])
    expect(texts).toContain('r3 in_progress')
    expect(texts).toContain('r5 still_open')
  })

  it('end it also where an order turns out to be settled elsewhere afterwards', async () => {
    const place = placeWith((asked) => (asked === 'r5' ? CREATED : LOST))
    for (const [index, reference] of ['r1', 'r2', 'r3', 'r4', 'r5'].entries())
      await leave(place, reference, { firstSentAt: NOW + index })
    const texts: string[] = []
    for await (const outcome of start(place)) {
      texts.push(...textsOf([outcome]))
      if (outcome.record.externalOrderId !== 'r3') continue
      for (const found of await storedRecords(place.context)) {
        if (found.record.externalOrderId !== 'r4') continue
        const created = { ...found.record, state: 'created', readable: true, order: ORDER } as const
        await remember(place.context, created, found)
      }
    }
    expect(texts).toEqual([
      'r1 still_open connection',
      'r2 still_open connection',
      'r3 still_open connection',
      'r4 created',
      'r5 still_open',
    ])
  })

  it('leave what was to be looked for in the list unlooked for, and open', async () => {
    const place = placeWith(() => LOST)
    await leave(place, 'r1', { hold: 'aborted' })
    for (const [index, reference] of ['r2', 'r3', 'r4'].entries())
      await leave(place, reference, { firstSentAt: NOW + 1 + index })
    expect(textsOf(await recovered(place)).at(-1)).toBe('r1 still_open')
    expect(place.asked).toEqual(['r2', 'r3', 'r4'])
  })

  it('are not two', async () => {
    const place = placeWith((asked) => (asked.startsWith('/v1/orders?') ? answer(200, []) : LOST))
    await leave(place, 'r1', { hold: 'aborted' })
    for (const [index, reference] of ['r2', 'r3'].entries())
      await leave(place, reference, { firstSentAt: NOW + 1 + index })
    expect(textsOf(await recovered(place)).at(-1)).toBe('r1 needs_attention aborted')
  })
})

describe('an order that recovery sends', () => {
  it('past its window only where the caller says so', async () => {
    const place = placeWith(() => CREATED)
    await leave(place, 'r1', { firstSentAt: NOW - 2 * WINDOW })
    expect(textsOf(await recovered(place, { replay: 'all' }))).toEqual(['r1 created'])
  })

  it('is not sent where the window ended while the claim was stored', async () => {
    const place = placeWith((asked) => (asked === 'r1' ? CREATED : answer(200, [])))
    await leave(place, 'r1', { firstSentAt: NOW - WINDOW + 1000 })
    const { update } = place.store
    place.store.update = async (...of) => {
      await new Promise<void>((resolve) => void place.runtime.setTimer(resolve, 2000))
      return await update.apply(place.store, of)
    }
    expect(textsOf(await recovered(place, { settings: { timeout: 1000 } }))).toEqual([
      'r1 still_open timeout',
    ])
    expect(place.asked).toEqual([])
  })

  it('was placed meanwhile by somebody else, whatever the service says to this one', async () => {
    for (const result of [LOST, problem(402)]) {
      const place = placeWith(async (_asked, { context }) => {
        for (const found of await storedRecords(context))
          await remember(context, { ...found.record, state: 'created', readable: true, order: ORDER }, found)
        return result
      })
      await leave(place, 'r1')
      const [outcome] = await recovered(place)
      expect(outcome).toMatchObject({ outcome: 'created', order: ORDER, record: { state: 'created' } })
      expect(outcome).not.toHaveProperty('error')
    }
  })

  it('is told with what went wrong, where it exists and cannot be read', async () => {
    const place = placeWith(() => UNREADABLE)
    await leave(place, 'r1')
    const [outcome] = await recovered(place)
    expect(outcome).toMatchObject({
      outcome: 'created',
      reason: 'unreadable',
      record: { state: 'created' },
      error: { code: 'invalid_response', charged: 'yes' },
    })
  })

  it('says which permission it needs', async () => {
    const place = placeWith(() => problem(403))
    await leave(place, 'r1')
    expect(await recovered(place)).toMatchObject([
      {
        outcome: 'still_open',
        error: { code: 'permission_denied', requiredPermission: 'orders:write', charged: 'unknown' },
      },
    ])
  })
})

describe('an order that exists without its body', () => {
  it('is read by its id, and is looked for where that is not known', async () => {
    const place = placeWith((asked) =>
      asked.startsWith('/v1/orders/') ? answer(200, ORDER) : answer(200, []),
    )
    const created = { state: 'created', ambiguous: false } as const
    for (const [reference, changes] of [
      ['r1', { ...created, order: { id: 'o1' } }],
      ['r2', created],
    ] as const) {
      const { record, row, id } = await leave(place, reference, changes)
      const { body: _body, ...rest } = record
      await remember(place.context, rest, { id, row, record })
    }
    const outcomes = await recovered(place)
    expect(textsOf(outcomes)).toEqual(['r1 created', 'r2 needs_attention unreadable'])
    expect(place.asked).toContain('/v1/orders/o1')
  })

  it('is not what an id in an open record proves', async () => {
    const place = placeWith((asked) =>
      asked.startsWith('/v1/orders/') ? answer(200, ORDER) : answer(200, []),
    )
    await leave(place, 'r1', { hold: 'aborted', order: { id: 'o1' } })
    expect(textsOf(await recovered(place))).toEqual(['r1 needs_attention aborted'])
    expect(place.asked).not.toContain('/v1/orders/o1')
  })
})

describe('what hooks are told of a recovered order', () => {
  const told = async (
    result: AttemptResult,
    changes: Partial<RecordContent> = {},
    first: (place: Place) => void = () => {},
  ): Promise<SettledEvent[]> => {
    const place = placeWith((asked) => (asked.startsWith('/v1') ? answer(200, []) : result))
    await leave(place, 'r1', changes)
    first(place)
    await recovered(place)
    return place.settled.filter(({ path, recovery }) => path === '/v1/orders' && recovery !== undefined)
  }

  it.each<[string, AttemptResult, Partial<RecordContent>, object]>([
    ['created', CREATED, {}, { recovery: 'created', ok: true, charged: 'yes', orderId: 'o1' }],
    [
      'created and not readable',
      answer(201, { ...ORDER, amount: 1.5 }),
      {},
      { recovery: 'created', ok: false, charged: 'yes', orderId: 'o1', code: 'invalid_response' },
    ],
    [
      'rejected',
      problem(402, 'NO'),
      { ambiguous: false, firstSentAt: NOW, hold: 'refused' },
      { recovery: 'needs_attention', ok: false, charged: 'unknown' },
    ],
    ['lost', LOST, {}, { recovery: 'still_open', ok: false, charged: 'unknown', code: 'connection' }],
  ])('%s', async (_what, result, changes, expected) => {
    const [event, ...more] = await told(result, changes)
    expect(more).toEqual([])
    expect(event).toMatchObject({
      operation: 'orders.recover',
      method: 'POST',
      path: '/v1/orders',
      durationMs: 0,
      externalOrderId: 'r1',
      ...expected,
    })
  })

  it('a refused order that had waited to be sent: an answer, and no doubt', async () => {
    const place = placeWith(() => problem(402))
    await enqueue(place, 'r1')
    expect(textsOf(await recovered(place))).toEqual(['r1 rejected payment_required'])
    expect(place.settled).toMatchObject([
      { recovery: 'rejected', ok: true, charged: 'no', attempts: 1, code: 'payment_required' },
    ])
  })

  it('an order that was found, although its record cannot be read again', async () => {
    const place = placeWith(() => answer(200, [{ ...ORDER, metadata: { externalOrderId: 'r1' } }]))
    await leave(place, 'r1', { hold: 'aborted' })
    const { get } = place.store
    let loads = 0
    place.store.get = (...of) =>
      ++loads > 1 ? Promise.reject(new Error('gone')) : get.apply(place.store, of)
    place.store.update = () => Promise.reject(new Error('gone'))
    expect(await recovered(place)).toMatchObject([{ outcome: 'created', record: { state: 'open' } }])
    expect(place.settled.find(({ recovery }) => recovery !== undefined)).toMatchObject({
      recovery: 'created',
      ok: true,
      charged: 'yes',
      orderId: 'o1',
    })
  })
})
