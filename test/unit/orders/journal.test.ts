import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { StoreError } from '../../../src/errors/classes.ts'
import { Deadline, Interruption } from '../../../src/http/deadline.ts'
import type { Codec } from '../../../src/options.ts'
import { type Found, type FoundRecord, Journal, type Written } from '../../../src/orders/journal.ts'
import type { JournalRecord, RecordContent } from '../../../src/orders/record.ts'
import { MemoryStore } from '../../../src/stores/memory.ts'
import type { StoredRow } from '../../../src/stores/store.ts'
import {
  faultyStore,
  type StoreFault,
  type StoreOperation,
  type StorePlan,
} from '../../support/faulty-store.ts'
import { collect } from '../../support/heap.ts'
import { LEFT_OPEN } from '../../support/order-context.ts'
import { fakeRuntime } from '../../support/runtime.ts'
import { errorOf } from '../../support/service.ts'
import { writesNoted } from '../../support/store-over.ts'

const TOTAL = 120_000

const content: RecordContent = { ...LEFT_OPEN, key: 'key-0', ambiguous: false, attempts: 0, claim: 'mine' }
const { body: _body, ...closed } = content
const refused: RecordContent = { ...closed, state: 'rejected', rejection: { kind: 'refused', status: 402 } }
const order = { id: 'ord_1', status: 's', amount: 1 }
const created: RecordContent = { ...closed, state: 'created', readable: true, order }

/** The fault of each operation, or a function if it changes. */
type Faults = Partial<Record<StoreOperation, StoreFault>>

/** A journal with rows that it shares with others, and automatic time. */
function journal(faults: Faults | StorePlan = {}, codec?: Codec) {
  const plan: StorePlan = typeof faults === 'function' ? faults : (operation) => faults[operation]
  const runtime = fakeRuntime({ auto: true })
  const rows = new MemoryStore()
  const history: StoredRow[] = []
  const noted = writesNoted(rows, (row) => history.push(row))
  const store = faultyStore(noted, runtime, plan)
  const own = new Journal({ store, scope: 's', codec, runtime })
  const deadline = (total = TOTAL, signal?: AbortSignal) => new Deadline(runtime, total, signal)
  return {
    runtime,
    rows,
    /** Every row that was written. */
    history,
    store,
    own,
    other: new Journal({ store: noted, scope: 's', codec, runtime }),
    deadline,
    /** Writes an open record. */
    open: () => writes(own.write(nothing, content, deadline())),
    stored: async () => await rows.get('s', 'id'),
  }
}

/** The found record of a write that must succeed. */
async function writes(written: Promise<Written>): Promise<FoundRecord> {
  const result = await written
  if (result.result !== 'written') throw new Error(`the write was ${result.result}`)
  return result.found
}

const nothing: Found = { id: 'id' }

/** The result of a write if the store has this fault. */
const expected: Readonly<Record<StoreFault, Written['result']>> = {
  throws: 'doubt',
  rejects: 'doubt',
  refuses: 'refused',
  hangs: 'doubt',
  answers_late: 'written',
  loses_answer: 'written',
  done_unanswered: 'written',
  done_late: 'doubt',
  rejects_done_late: 'doubt',
  loses: 'lost',
}
const faults = Object.keys(expected) as StoreFault[]

describe('a write', () => {
  it('a write inserts a missing row, and updates a found row to the next version', async () => {
    const { own, runtime, deadline, stored } = journal()
    const begun = runtime.now()
    const first = await writes(own.write(nothing, content, deadline()))
    runtime.jump(5)
    const second = await writes(own.write(first, refused, deadline()))

    expect(first.record).toMatchObject({ version: 1, createdAt: begun, updatedAt: begun })
    const later = { version: 2, createdAt: begun, updatedAt: begun + 5 }
    expect(second.record).toMatchObject({ ...later, state: 'rejected' })
    expect(await stored()).toEqual(second.row)
    expect((await own.load('id', deadline())) as Found).toEqual(second)
  })

  it('a write makes no further calls to a store that responds', async () => {
    const { own, store, deadline } = journal()
    await writes(own.write(nothing, content, deadline()))
    expect(store.calls).toEqual(['insert'])
  })

  it('a write without time left still waits a moment', async () => {
    const { own, rows, runtime, deadline } = journal()
    const insert = rows.insert.bind(rows)
    rows.insert = async (row) => {
      await new Promise<void>((resolve) => runtime.setTimer(resolve, 100))
      return await insert(row)
    }
    await writes(own.write(nothing, content, deadline(0)))
  })

  it('a write has a cause in words even if the store gives none', async () => {
    const { own, rows, deadline } = journal()
    rows.insert = () => Promise.reject(undefined)
    expect(await own.write(nothing, content, deadline())).toMatchObject({
      result: 'doubt',
      cause: { message: 'the store failed' },
    })
  })

  it('a write loses against a faster writer', async () => {
    const { own, other, deadline, stored } = journal()
    const theirs = await writes(other.write(nothing, { ...content, claim: 'theirs' }, deadline()))
    expect(await own.write(nothing, content, deadline())).toEqual({ result: 'lost' })
    await writes(other.write(theirs, refused, deadline()))
    expect(await own.write(theirs, created, deadline())).toEqual({ result: 'lost' })
    expect((await stored())?.state).toBe('rejected')
  })

  it.each(faults.flatMap((fault) => [['insert', fault] as const, ['update', fault] as const]))(
    'a write reports its result, an %s, if the store %s',
    async (operation, fault) => {
      const { own, other, deadline, stored } = journal({ [operation]: fault })
      const found = operation === 'insert' ? nothing : await writes(other.write(nothing, content, deadline()))
      const before = (await stored())?.version ?? 0
      const written = await own.write(found, refused, deadline())
      expect(written.result).toBe(expected[fault])
      if (written.result === 'written') expect(await stored()).toEqual(written.found.row)
      else expect((await stored())?.version ?? 0).toBe(before)
      if (/throws|rejects/.test(fault))
        expect(written).toMatchObject({ cause: { message: `the store ${fault}` } })
    },
  )

  it('a write is recognised if the store applied it twice and reports that it came too late', async () => {
    const { own, rows, deadline } = journal()
    const insert = rows.insert.bind(rows)
    rows.insert = async (row) => {
      await insert(row)
      return await insert(row)
    }
    expect((await own.write(nothing, content, deadline())).result).toBe('written')
  })

  it('a write is in doubt if reading back gets no response either', async () => {
    const { own, deadline } = journal({ insert: 'rejects', get: 'hangs', update: 'hangs' })
    expect((await own.write(nothing, content, deadline())).result).toBe('doubt')
  })

  it("a write is never confused with another call's write of the same version", async () => {
    const { own, other, deadline } = journal({ insert: 'rejects' })
    await writes(other.write(nothing, { ...content, claim: 'theirs' }, deadline()))
    expect((await own.write(nothing, content, deadline())).result).toBe('lost')
  })

  it.each([
    ['ten seconds', TOTAL, 10_000],
    ['the time that the call has', 2000, 2000],
  ])('a write is awaited for %s at most, and briefly after that', async (_what, total, most) => {
    const { own, runtime, deadline } = journal({ insert: 'hangs', update: 'hangs' })
    const begun = runtime.monotonic()
    await own.write(nothing, content, deadline(total))
    const took = runtime.monotonic() - begun
    expect(took).toBeGreaterThanOrEqual(most)
    expect(took).toBeLessThanOrEqual(most + 1000)
  })
})

describe('what write() says', () => {
  it('the result of write() is true immediately and stays true, whatever the store and other writers do', async () => {
    const mishaps = faults.filter((fault) => fault !== 'refuses' && fault !== 'loses')
    const fault = fc.option(fc.constantFrom(...mishaps), { nil: undefined })
    const scenario = fc.record({
      gets: fc.array(fault, { maxLength: 3 }),
      inserts: fc.array(fault, { maxLength: 2 }),
      updates: fc.array(fault, { maxLength: 3 }),
      rival: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(scenario, async ({ gets, inserts, updates, rival }) => {
        const plans = { get: gets, insert: inserts, update: updates }
        const { own, other, history, runtime, deadline } = journal(
          (operation, count) => plans[operation][count - 1],
        )
        const begun = rival ? other.write(nothing, { ...content, claim: 'theirs' }, deadline()) : undefined
        const first = await own.write(nothing, content, deadline())
        const found =
          first.result === 'written' ? first.found : ((await begun) as { found?: FoundRecord })?.found
        const second = found && (await own.write(found, refused, deadline()))
        await runtime.advance(5 * 60_000)

        for (const [written, claim, state] of [
          [first, 'mine', 'open'],
          [second, 'mine', 'rejected'],
        ] as const) {
          const applied = history.some(
            (row) => row.state === state && (JSON.parse(row.data) as JournalRecord).claim === claim,
          )
          if (written?.result === 'written') expect(applied).toBe(true)
          if (written?.result === 'failed') expect(applied).toBe(false)
        }
        expect(history.map(({ version }) => version)).toEqual(history.map((_row, index) => index + 1))
      }),
      { numRuns: 300 },
    )
  }, 60_000)
})

describe('a settlement', () => {
  it.each([
    ['the call has no time left', 2000, false],
    ['the caller has given up', 0, true],
  ])('a settlement is written although %s', async (_what, passes, aborts) => {
    const { own, runtime, deadline, stored } = journal()
    const controller = new AbortController()
    const end = deadline(1000, controller.signal)
    const found = await writes(own.write(nothing, content, end))
    await runtime.advance(passes)
    if (aborts) controller.abort()
    await writes(own.settle(found, refused, end))
    expect((await stored())?.state).toBe('rejected')
  })

  it('a settlement takes only a moment after the caller aborted', async () => {
    let silent = false
    const { own, runtime, deadline } = journal(() => (silent ? 'hangs' : undefined))
    const controller = new AbortController()
    const end = deadline(TOTAL, controller.signal)
    const found = await writes(own.write(nothing, content, end))
    controller.abort()
    silent = true
    const begun = runtime.monotonic()
    expect((await own.settle(found, refused, end)).result).toBe('doubt')
    expect(runtime.monotonic() - begun).toBeLessThanOrEqual(1000)
  })

  it('a settlement is awaited as long as the call has time', async () => {
    const { open, own, deadline } = journal({ update: 'answers_late', get: 'hangs' })
    const found = await open()
    await writes(own.settle(found, refused, deadline()))
  })
})

describe('a proof', () => {
  const merge = (newest: JournalRecord): RecordContent | undefined =>
    newest.state === 'created' ? undefined : created

  const doubted = { ...content, ambiguous: true }
  it.each<[string, RecordContent, Faults, number]>([
    ['closed it', refused, {}, TOTAL],
    ['left it in doubt', doubted, {}, TOTAL],
    ['closed it, although the call has no time left', refused, {}, 0],
    ['closed it, where the store is slow and there is time', refused, { get: 'answers_late' }, TOTAL],
  ])(
    'a proof overwrites what others have written meanwhile: they %s',
    async (_what, theirs, broken, total) => {
      const { open, own, other, deadline, stored } = journal(broken)
      const found = await open()
      await writes(other.write(found, theirs, deadline()))
      expect(await own.prove(found, merge, deadline(total))).toBe(true)
      expect((await stored())?.state).toBe('created')
    },
  )

  it.each(['rejects', 'hangs'] as const)(
    'a proof is stored in the background if the newest version is unreadable, because the store %s',
    async (fault) => {
      const { open, own, runtime, store, deadline } = journal({ update: 'loses', get: fault })
      const found = await open()
      const begun = runtime.monotonic()
      expect(await own.prove(found, merge, deadline(1000))).toBe(false)
      expect(runtime.monotonic() - begun).toBeLessThanOrEqual(2000)
      expect(store.calls.filter((call) => call !== 'get')).toEqual(['insert', 'update'])
      await own.flush({ whole: true })
    },
  )

  it('a proof is stored in the background after eight faster writers', async () => {
    const { open, own, store, deadline } = journal({ update: 'loses' })
    const found = await open()
    expect(await own.prove(found, merge, deadline())).toBe(false)
    expect(store.calls.filter((call) => call === 'update')).toHaveLength(8)
    await own.flush({ whole: true })
  })

  it('a proof is stored again if the record was pruned or forgotten meanwhile', async () => {
    const { open, own, other, deadline, stored } = journal()
    const found = await open()
    const theirs = await writes(other.write(found, refused, deadline()))
    await other.forget(theirs, deadline())
    expect(await own.prove(found, merge, deadline())).toBe(true)
    expect((await stored())?.state).toBe('created')
  })

  it('after some minutes, a proof is left to recovery, and no background work continues', async () => {
    const { open, own, runtime, deadline, store } = journal({ update: 'rejects' })
    const found = await open()
    await own.prove(found, merge, deadline())
    await runtime.advance(10 * 60_000)
    const calls = store.calls.length
    expect(runtime.timers).toBe(0)
    await runtime.advance(60 * 60_000)
    await own.flush({ whole: true })
    expect(store.calls.length).toBe(calls)
  })
})

describe('a flush', () => {
  const merge = (): RecordContent => created

  it('a flush leaves writes of other journals to them, unless it flushes the complete store', async () => {
    let broken = true
    const { open, own, runtime, store, deadline, stored } = journal((name) =>
      name === 'update' && broken ? 'rejects' : undefined,
    )
    const neighbour = new Journal({ store, scope: 't', codec: undefined, runtime })
    runtime.auto = false
    const found = await open()
    await own.prove(found, merge, deadline())
    broken = false
    await neighbour.flush({ whole: false })
    expect((await stored())?.state).toBe('open')
    await neighbour.flush({ whole: true })
    expect((await stored())?.state).toBe('created')
  })
})

describe('a read', () => {
  it("a read quotes the package's own stores, and no others", async () => {
    const { own, rows, deadline } = journal()
    const cause = new StoreError('The disk is full.', { charged: 'unknown' })
    rows.get = () => Promise.reject(cause)
    const load = async () => await own.load('id', deadline())
    const message = expect.stringMatching(
      /^The store could not be read, so nothing more was sent\. .* The store reported: The disk is full\.$/,
    )
    expect(await errorOf(load())).toMatchObject({ message, cause })
    rows.get = () => Promise.reject(new Error('secret'))
    expect(await errorOf(load())).toMatchObject({
      message: expect.stringMatching(/repeat this call unchanged\.$/),
    })
  })

  it('a read ends with the call', async () => {
    const { own, deadline } = journal(() => 'hangs')
    expect(await own.load('id', deadline(500))).toBeInstanceOf(Interruption)
    expect(await own.load('id', deadline(TOTAL, AbortSignal.abort()))).toBeInstanceOf(Interruption)
  })

  it('a read ends with the call even if the codec never resolves', async () => {
    let silent = false
    const decrypt = (text: string) => (silent ? new Promise<string>(() => {}) : text)
    const { own, deadline } = journal({}, { encrypt: (text) => text, decrypt })
    await writes(own.write(nothing, content, deadline()))
    silent = true
    expect(await own.load('id', deadline(1000))).toEqual(new Interruption('deadline'))
  })

  it('a read returns the row of a forgotten record, so its versions continue', async () => {
    const { own, deadline } = journal()
    const found = await writes(own.write(nothing, refused, deadline()))
    expect(await own.forget(found, deadline())).toBe(true)
    const again = (await own.load('id', deadline())) as Found
    expect(again.record).toBeUndefined()
    expect(again.row?.version).toBe(2)
    expect((await writes(own.write(again, content, deadline()))).record.version).toBe(3)
  })
})

describe('lists and removals', () => {
  it('lists and removals leave nothing behind after a removal ends', async () => {
    const { own, store } = journal()
    let reason: WeakRef<Error> | undefined
    store.prune = async () => {
      const error = new Error('no')
      reason = new WeakRef(error)
      throw error
    }
    await own.prune({ created: 0, rejected: 0 }).catch(() => {})
    // Wait a turn: a WeakRef keeps its target until the turn of its creation ends.
    await new Promise((resolve) => setImmediate(resolve))
    collect()
    expect(reason?.deref()).toBeUndefined()
    await own.flush({ whole: true })
  })

  it('lists and removals report a store that does not respond', async () => {
    const { own, rows, deadline } = journal()
    const found = await writes(own.write(nothing, created, deadline()))
    rows.update = () => new Promise(() => {})
    const broken = () => Promise.reject(new Error('no'))
    Object.assign(rows, { prune: broken, listOpen: broken })
    expect(await errorOf(own.forget(found, deadline()))).toMatchObject({
      code: 'store',
      message:
        'The store did not confirm the removal of the record. Nothing was sent. Repair the store, then call again.',
    })
    expect(await errorOf(own.prune({ created: 0, rejected: 0 }))).toMatchObject({
      code: 'store',
      message: 'The store could not remove old records. Nothing was sent. Call again.',
    })
    expect(await errorOf(own.rows({ open: true }).next())).toMatchObject({ code: 'store' })
  })
})

describe('a fence against a write that was given up', () => {
  it('a fence is the next version of the found row, with the same text', async () => {
    const { own, runtime, deadline, stored } = journal()
    const found = await writes(own.write(nothing, refused, deadline()))
    runtime.jump(5)
    expect(await own.fence(found, deadline())).toBe(true)
    expect(await stored()).toEqual({ ...found.row, version: 2, updatedAt: runtime.now() })
    expect(await own.write(found, content, deadline())).toEqual({ result: 'lost' })
  })

  it('a fence is absent if another writer was faster, or the store does not confirm it', async () => {
    const { own, rows, deadline, stored } = journal()
    const found = await writes(own.write(nothing, refused, deadline()))
    const newest = await writes(own.write(found, { ...refused, claim: 'of another' }, deadline()))
    expect(await own.fence(found, deadline())).toBe(false)
    rows.update = () => Promise.reject(new Error('gone'))
    expect(await own.fence(newest, deadline())).toBe(false)
    expect(await stored()).toEqual(newest.row)
  })
})
