import { inspect } from 'node:util'
import type { Codec, CustomerOrderingClient } from 'customer-ordering-sdk'
import { describe, expect, vi } from 'vitest'
import { all, throwing } from '../../support/calls.ts'
import { it } from '../../support/history.ts'
import { anonymousOrder, failure, Lab, order } from '../../support/lab.ts'
import { firstWriteLate, on, storeOver } from '../../support/stores.ts'

/** A codec that reads only what it has written itself. */
function sealed(name: string): Codec {
  return {
    encrypt: (text) => Buffer.from(`${name}:${text}`).toString('base64'),
    decrypt(text) {
      const [by, ...parts] = Buffer.from(text, 'base64').toString().split(':')
      if (by !== name) throw new Error('sealed by another codec')
      return parts.join(':')
    },
  }
}

const codec = sealed('ours')
const coded = (lab: Lab, changes: Partial<Codec> = {}) => lab.client({ codec: { ...codec, ...changes } })
const create = ({ orders }: CustomerOrderingClient) => orders.create(order('r1'))
const remembered = (lab: Lab) => all(coded(lab).orders.remembered({ externalOrderId: 'r1' }))
const recover = (lab: Lab) => all(coded(lab).orders.recover())
const rejects = async (call: Promise<unknown>, like: object) =>
  expect(await failure(call)).toMatchObject(like)
const UNSENT = { code: 'store', charged: 'no' } as const
const UNKNOWN = { code: 'store', charged: 'unknown' } as const
const SECRETS = /secret|@someone|svc_standard|quantity|ord_/

async function atRest(lab: Lab): Promise<string> {
  const { rows } = await lab.rows.list(lab.place('').scope, { limit: 100 })
  return JSON.stringify(rows)
}

it('sealed records reveal nothing of an order, whether open, created or rejected', async (lab) => {
  const client = coded(lab)
  lab.fault({ type: 'drop' }, 5)
  await failure(client.orders.create(order('secret-open')))
  await client.orders.create(order('secret-created'))
  await client.orders.create(anonymousOrder())
  lab.drain()
  await failure(client.orders.create(order('secret-rejected')))
  expect(await atRest(lab)).not.toMatch(SECRETS)
})

it('records from before the codec stay readable, and are sealed with their next change', async (lab) => {
  const placed = await lab.create()
  lab.fault({ type: 'drop' }, 5)
  await failure(lab.create(order('r2')))
  expect(await create(coded(lab))).toEqual(placed)
  await coded(lab).orders.create(order('r2'))
  expect((await lab.row('ref:r2'))?.data).not.toMatch(SECRETS)
})

it('reading a created order does not seal it: the record stays as written', async (lab) => {
  await lab.create()
  const row = await lab.row('ref:r1')
  const client = coded(lab)
  await client.orders.create(order('r1'))
  await all(client.orders.remembered({ externalOrderId: 'r1' }))
  await all(client.orders.recover())
  expect(await lab.row('ref:r1')).toEqual(row)
  expect(row?.data).toMatch(SECRETS)
})

describe('a record that the codec cannot read', () => {
  const clients: Readonly<Record<string, { readonly codec?: Codec }>> = {
    'another key': { codec: sealed('another') },
    'no codec': {},
    'a codec that gives something else': {
      codec: { encrypt: (text) => text, decrypt: () => '{"layout":1}' },
    },
  }

  it.each(Object.entries(clients))('an unreadable record stops the order: %s', async (lab, _, options) => {
    await create(coded(lab))
    const before = lab.sandbox.requests.length
    const row = await lab.row('ref:r1')
    const { client } = lab.process(options)
    const message = expect.stringMatching(/another codec/)
    await rejects(create(client), { code: 'store', charged: 'unknown', attempts: 0, message })
    const name = { externalOrderId: 'r1' }
    for (const call of [
      () => all(client.orders.remembered(name)),
      () => client.orders.forget(name),
      () => client.orders.resolve(name, { as: 'abandoned' }),
    ])
      await rejects(call(), { code: 'store' })
    expect(lab.sandbox.requests.length).toBe(before)
    expect(await lab.row('ref:r1')).toEqual(row)
  })

  it('a record that the codec cannot read needs a person, and is recovered with the right codec', async (lab) => {
    lab.fault({ type: 'drop' }, 5)
    await failure(create(coded(lab)))
    expect(await all(lab.orders.recover())).toMatchObject([
      { outcome: 'needs_attention', reason: 'corrupt', record: { state: 'open' } },
    ])
    expect(await recover(lab)).toMatchObject([{ outcome: 'created' }])
    lab.sandbox.expectChargedOnce('r1')
  })
})

describe('what a codec throws', () => {
  const secret = new Error('the key is hunter2')
  const failing = (): never => {
    throw secret
  }

  it('an error thrown by encrypt() is the cause, unchanged, but not part of the text', async (lab) => {
    const error = await failure(create(coded(lab, { encrypt: failing })))
    expect(error).toMatchObject({ code: 'store', charged: 'no' })
    expect(error.cause).toBe(secret)
    expect(`${error.message} ${JSON.stringify(error)} ${inspect(error)}`).not.toContain('hunter2')
  })

  it('an error thrown by decrypt() is not reported', async (lab) => {
    await create(coded(lab))
    const client = lab.process({ codec: { ...codec, decrypt: failing } }).client
    const error = await failure(client.orders.create(order('r1')))
    expect(error).toMatchObject({ code: 'store', charged: 'unknown', attempts: 0 })
    expect(error.cause).toBeUndefined()
    expect(`${error.stack} ${JSON.stringify(error)} ${inspect(error)}`).not.toContain('hunter2')
  })
})

describe('a codec that cannot encrypt', () => {
  const broken: Codec = { ...codec, encrypt: () => Promise.reject(new Error('no key today')) }
  /** Encrypts the claim, and nothing after it. */
  const worksOnce = (): Partial<Codec> => ({
    encrypt: vi.fn(broken.encrypt).mockImplementationOnce(codec.encrypt),
  })
  /** A call abandons its write, which is applied a minute later. */
  const abandoned = (lab: Lab, write: 'insert' | 'update') =>
    rejects(create(lab.elsewhere({ codec }, firstWriteLate(write))), { charged: 'unknown' })
  /** Nothing is sent, even if abandoned writes arrive and recovery runs. */
  async function neverSent(lab: Lab): Promise<void> {
    await lab.runtime.advance(2 * 60_000)
    expect(await recover(lab)).toEqual([])
    expect(lab.posts).toHaveLength(0)
  }

  it('if the codec cannot encrypt, the order is reported as uncharged, even after an abandoned write', async (lab) => {
    await abandoned(lab, 'insert')
    await rejects(create(lab.client({ codec: broken })), { ...UNSENT, attempts: 0 })
    await neverSent(lab)
    await create(coded(lab))
    lab.charged()
  })

  it('if the codec cannot encrypt, a refused order is reported as uncharged, even after an abandoned claim', async (lab) => {
    lab.drain()
    await rejects(create(coded(lab)), { status: 402 })
    lab.topUp()
    await abandoned(lab, 'update')
    await rejects(create(lab.client({ codec: broken })), UNSENT)
    await lab.runtime.advance(2 * 60_000)
    expect(await remembered(lab)).toMatchObject([{ state: 'rejected', rejection: { kind: 'refused' } }])
    expect(lab.posts).toHaveLength(1)
  })

  it('if the codec cannot encrypt and nothing can be written, the outcome is unknown', async (lab) => {
    await rejects(create(lab.elsewhere({ codec: broken }, on('insert', 'rejects'))), UNKNOWN)
  })

  it('a codec that prevents sending is called once per call', async (lab) => {
    const encrypt = vi.fn(throwing('no key today'))
    await rejects(create(coded(lab, { encrypt })), UNSENT)
    expect(encrypt).toHaveBeenCalledOnce()
  })

  it("a codec that cannot seal the record does not make an aborted call's charged no wrong", async (lab) => {
    await abandoned(lab, 'insert')
    const stopped = lab.client({ codec: broken }).orders.create(order('r1'), { signal: AbortSignal.abort() })
    await rejects(stopped, { code: 'aborted', charged: 'no' })
    await neverSent(lab)
  })

  it('if the codec cannot encrypt, a refused order stays open, because recovery may send it again', async (lab) => {
    lab.drain()
    await rejects(create(coded(lab, worksOnce())), { status: 402, charged: 'unknown' })
    expect(await remembered(lab)).toMatchObject([{ state: 'open' }])
  })

  it('if the codec cannot encrypt, an order that an earlier call left open has an unknown outcome', async (lab) => {
    lab.fault({ type: 'drop' }, 5)
    await failure(create(coded(lab)))
    const sent = lab.posts.length
    await rejects(create(lab.client({ codec: broken })), { ...UNKNOWN, attempts: 0 })
    expect(lab.posts).toHaveLength(sent)
    expect(await recover(lab)).toMatchObject([{ outcome: 'created' }])
    lab.charged()
  })

  it('if the codec breaks after the claim, recovery stores the charged order', async (lab) => {
    const placed = await create(coded(lab, worksOnce()))
    await lab.runtime.advance(900_000)
    const { client } = lab.process({ codec })
    const state = 'open'
    expect(await all(client.orders.remembered({ externalOrderId: 'r1' }))).toMatchObject([{ state }])
    expect(await all(client.orders.recover({ takeOver: true }))).toHaveLength(1)
    expect(await client.orders.create(order('r1'))).toMatchObject({ id: placed.id })
    expect(lab.charged()).toBe(placed.id)
  })
})

it.each<[string, unknown]>([
  ['nothing', undefined],
  ['an empty text', ''],
  ['a number', 5],
  ['an object', {}],
  ['half a character', 'x\ud800'],
])('if encrypt() returns %s, the order is not sent', async (lab, _what, sealed) => {
  const encrypt = (async () => sealed) as Codec['encrypt']
  const cause = new TypeError('codec.encrypt() must return a non-empty string without lone surrogates')
  const repair = /Repair the codec, which did not encrypt the record, and call again\.$/
  const error = await failure(create(coded(lab, { encrypt })))
  expect(error).toMatchObject({ ...UNSENT, attempts: 0, cause })
  expect(error.message).toMatch(repair)
  expect(lab.posts).toHaveLength(0)
  await create(coded(lab))
  lab.charged()
})

describe('a codec that never answers', () => {
  const never = (): Promise<string> => new Promise(() => {})

  it('a record whose decryption hangs does not hide the other records', async (lab) => {
    for (const name of ['r1', 'r2', 'r3']) await lab.doubted('drop', order(name), { codec })
    let asked = 0
    const decrypt = (text: string): string | Promise<string> =>
      ++asked === 2 ? never() : codec.decrypt(text)
    const recovering = all(coded(lab, { decrypt }).orders.recover())
    await lab.runtime.advance(11_000)
    const outcomes = await recovering
    expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(['created', 'created', 'still_open'])
    expect(outcomes.find(({ outcome }) => outcome === 'still_open')?.error).toMatchObject({ code: 'store' })
    // Each order was sent once before.
    expect(lab.posts).toHaveLength(5)

    asked = 0
    const seen: string[] = []
    const listing = (async () => {
      const records = coded(lab, { decrypt }).orders.remembered({ since: 0 })
      for await (const { slot } of records) seen.push(slot)
    })()
    const failed = failure(listing)
    await lab.runtime.advance(11_000)
    expect(await failed).toMatchObject({ code: 'store', charged: 'unknown' })
    expect(seen).toHaveLength(2)
  })

  it.each([0, 300])(
    'a call ends within a second of its time with a hanging or slow codec, and a store that takes %d ms',
    async (_lab, storeTakes) => {
      for (const codecTakes of [440, Number.POSITIVE_INFINITY]) {
        const lab = new Lab()
        const slow = async <T>(milliseconds: number, run: () => T): Promise<Awaited<T>> => {
          if (milliseconds === Number.POSITIVE_INFINITY) await never()
          await new Promise<void>((resolve) => void lab.runtime.setTimer(resolve, milliseconds))
          return await run()
        }
        const { rows } = lab
        const store = storeOver(rows, {
          get: (scope, id) => slow(storeTakes, () => rows.get(scope, id)),
          insert: (row) => slow(storeTakes, () => rows.insert(row)),
          update: (row, version) => slow(storeTakes, () => rows.update(row, version)),
        })
        const encrypt = (text: string) => slow(codecTakes, () => codec.encrypt(text))
        const totalTimeout = storeTakes + 1
        const client = lab.client({ store, codec: { ...codec, encrypt } })
        const began = lab.runtime.monotonic()
        let ended = Number.POSITIVE_INFINITY
        const pending = failure(client.orders.create(order('r1'), { totalTimeout })).finally(() => {
          ended = lab.runtime.monotonic()
        })
        for (let passed = 0; passed < 4_000; passed += 10) await lab.runtime.advance(10)
        expect(await pending).toMatchObject({ attempts: 0 })
        expect(ended - began - totalTimeout).toBeLessThanOrEqual(1_000)
        expect(lab.posts).toHaveLength(0)
      }
    },
  )

  it.each([
    ['at the end of the call', 3_000, 'timeout'],
    ['after ten seconds, even if the call has more time', 10_000, 'store'],
  ])('with a hanging encrypt(), no order is sent, and the call ends %s', async (lab, _when, after, code) => {
    const options = code === 'timeout' ? { totalTimeout: after } : {}
    const begun = lab.runtime.monotonic()
    const error = await failure(coded(lab, { encrypt: never }).orders.create(order('r1'), options))
    expect(lab.runtime.monotonic() - begun).toBe(after)
    expect(error).toMatchObject({ code, charged: 'no', attempts: 0 })
    const cause = 'TypeError: codec.encrypt() did not finish in time'
    if (code === 'store') expect(String(error.cause)).toBe(cause)
    expect(lab.posts).toHaveLength(0)
    await create(coded(lab))
    lab.charged()
  })

  it.each([
    ['ten seconds', 120_000, 10_000],
    ['the end of the call', 3_000, 3_000],
    ['a moment longer than a call that has hardly any time left', 100, 450],
  ])(
    'a hanging encrypt() delays a charged order by %s, and recovery stores it',
    async (lab, _when, totalTimeout, waited) => {
      let calls = 0
      const stuck: Codec = { ...codec, encrypt: (text) => (++calls === 2 ? never() : codec.encrypt(text)) }
      const begun = lab.runtime.monotonic()
      const placed = await lab.client({ codec: stuck }).orders.create(order('r1'), { totalTimeout })
      expect(lab.runtime.monotonic() - begun).toBe(waited)
      expect(placed.id).toBe(lab.charged())
      await lab.runtime.advance(120_000)
      await all(coded(lab).orders.recover())
      expect(await remembered(lab)).toMatchObject([{ state: 'created', order: { id: placed.id } }])
      lab.sandbox.expectCharges(1)
    },
  )

  it("a codec of 400 ms stores the caller's abort, so that recover() does not buy the order", async (lab) => {
    const pause = (): Promise<void> => new Promise((resolve) => void lab.runtime.setTimer(resolve, 400))
    const encrypt = (text: string): Promise<string> => pause().then(() => codec.encrypt(text))
    const slow: Codec = { ...codec, encrypt }
    const client = lab.client({ codec: slow })
    const controller = new AbortController()
    lab.fault({ type: 'stall' })
    const { ending } = await lab.begin(() =>
      failure(client.orders.create(order('r1'), { signal: controller.signal })),
    )
    await lab.runtime.advance(1_000)
    controller.abort()
    await lab.runtime.advance(1_000)
    expect(await ending).toMatchObject({ code: 'aborted', charged: 'unknown' })
    await lab.runtime.advance(200_000)
    expect(await recover(lab)).toMatchObject([{ outcome: 'needs_attention', reason: 'aborted' }])
    lab.sandbox.expectCharges(0)
  })

  it('an aborted call does not wait for a hanging codec', async (lab) => {
    const controller = new AbortController()
    const encrypt = (): Promise<string> => {
      controller.abort()
      return never()
    }
    const client = coded(lab, { encrypt })
    const pending = failure(client.orders.create(order('r1'), { signal: controller.signal }))
    await lab.runtime.advance(1_000)
    expect(await pending).toMatchObject({ code: 'aborted', charged: 'no', attempts: 0 })
  })

  it.each<[string, (client: CustomerOrderingClient) => Promise<unknown>, code?: string]>([
    ['create() after ten seconds', (client) => client.orders.create(order('r1'))],
    ['create() at its end', ({ orders }) => orders.create(order('r1'), { totalTimeout: 2000 }), 'timeout'],
    ['remembered() after ten seconds', (client) => all(client.orders.remembered({ idempotencyKey: 'k1' }))],
  ])('a hanging decrypt() ends %s with an unknown outcome', async (lab, _name, ask, code = 'store') => {
    await lab.doubted('drop', order('r1'), { codec })
    const pending = failure(ask(coded(lab, { decrypt: never })))
    await lab.runtime.advance(11_000)
    expect(await pending).toMatchObject({ code, charged: 'unknown' })
    expect(lab.posts).toHaveLength(1)
  })
})
