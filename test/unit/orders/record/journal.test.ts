import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Deadline } from '../../../../src/http/deadline.ts'
import { rowIdOf } from '../../../../src/identity/keys.ts'
import type { Codec } from '../../../../src/options.ts'
import type { Found, FoundRecord, Written } from '../../../../src/orders/record/journal.ts'
import { emptyRow, type RecordContent } from '../../../../src/orders/record/record.ts'
import { proveCreated } from '../../../../src/orders/sending/send.ts'
import { MemoryStore } from '../../../../src/stores/memory.ts'
import type { StoredRow } from '../../../../src/stores/store.ts'
import { uuidV5 } from '../../../../src/uuid-v5.ts'
import { throwing } from '../../../support/calls.ts'
import { journalOver, LEFT_OPEN, orderContext } from '../../../support/order-context.ts'
import { fakeRuntime } from '../../../support/runtime.ts'
import {
  faultyStore,
  type StoreFault,
  type StoreOperation,
  type StorePlan,
  writesNoted,
} from '../../../support/stores.ts'

const TOTAL = 120_000

const ID = rowIdOf(uuidV5, LEFT_OPEN.slot)
const content: RecordContent = { ...LEFT_OPEN, ambiguous: false, attempts: 0, claim: 'mine' }
const { body: _body, ...closed } = content
const refused: RecordContent = { ...closed, state: 'rejected', rejection: { kind: 'refused', status: 402 } }
const order = { id: 'ord_1', status: 's', amount: 1 }
const created: RecordContent = { ...closed, state: 'created', order }
const PROOF = { order, orderId: order.id, attempts: 0, claim: 'mine' } as const

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
  const own = journalOver(store, runtime, codec)
  const deadline = (total = TOTAL, signal?: AbortSignal) => new Deadline(runtime, total, signal)
  return {
    runtime,
    rows,
    /** Every row that was written. */
    history,
    store,
    own,
    other: journalOver(noted, runtime, codec),
    deadline,
    /** Writes an open record. */
    open: () => writes(own.write(nothing, content, deadline())),
    /** The record with the proof, if it was stored. */
    proof: async (found: FoundRecord, total: Deadline) => {
      const context = orderContext({ journal: own }, { runtime })
      const proven = await proveCreated(context, found, { ...PROOF, sent: found.record }, total)
      return proven.remembered ? proven.record : undefined
    },
    stored: async () => await rows.get('s', ID),
  }
}

/** The found record of a write that must succeed. */
async function writes(written: Promise<Written>): Promise<FoundRecord> {
  const result = await written
  if (result.result !== 'written') throw new Error(`the write was ${result.result}`)
  return result.found
}

const nothing: Found = { id: ID }

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
    const { own, runtime, deadline, store, stored } = journal()
    const begun = runtime.now()
    const first = await writes(own.write(nothing, content, deadline()))
    runtime.jump(5)
    const second = await writes(own.write(first, refused, deadline()))

    expect(store.calls).toEqual(['insert', 'update'])
    // A row that was pruned must not get the versions of its predecessor.
    expect(first.record).toMatchObject({ version: begun + 1, createdAt: begun, updatedAt: begun })
    const later = { version: begun + 2, createdAt: begun, updatedAt: begun + 5 }
    expect(second.record).toMatchObject({ ...later, state: 'rejected' })
    expect(await stored()).toEqual(second.row)
    expect((await own.load(ID, deadline())) as Found).toEqual(second)
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
    const doubt = { result: 'doubt', cause: { message: 'the store failed' } }
    expect(await own.write(nothing, content, deadline())).toMatchObject(doubt)
  })

  it.each<[string, Faults]>([
    ['responds', {}],
    ['rejects both, though the versions are equal', { insert: 'rejects', update: 'rejects' }],
  ])('a write loses against a faster writer, if the store %s', async (_what, broken) => {
    const { own, other, deadline, stored } = journal(broken)
    const theirs = await writes(other.write(nothing, { ...content, claim: 'theirs' }, deadline()))
    expect((await own.write(nothing, content, deadline())).result).toBe('lost')
    await writes(other.write(theirs, refused, deadline()))
    expect((await own.write(theirs, created, deadline())).result).toBe('lost')
    expect((await stored())?.state).toBe('rejected')
  })

  const each = faults.flatMap((fault) => [['insert', fault] as const, ['update', fault] as const])
  it.each(each)('a write reports its result, an %s, if the store %s', async (operation, fault) => {
    const { own, other, deadline, stored } = journal({ [operation]: fault })
    const found = operation === 'insert' ? nothing : await writes(other.write(nothing, content, deadline()))
    const before = (await stored())?.version ?? 0
    const written = await own.write(found, refused, deadline())
    expect(written.result).toBe(expected[fault])
    if (written.result === 'written') expect(await stored()).toEqual(written.found.row)
    else expect((await stored())?.version ?? 0).toBe(before)
    if (/throws|rejects/.test(fault))
      expect(written).toMatchObject({ cause: { message: `the store ${fault}` } })
  })

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

it('the result of write() is true immediately and stays true, whatever the store and other writers do', async () => {
  const mishaps = faults.filter((fault) => fault !== 'refuses' && fault !== 'loses')
  const fault = fc.option(fc.constantFrom(...mishaps), { nil: undefined })
  const some = fc.array(fault, { maxLength: 3 })
  const plans = fc.record({ get: some, insert: some, update: some })
  const property = fc.asyncProperty(plans, fc.boolean(), async (plan, rival) => {
    const { own, other, history, runtime, deadline } = journal(
      (operation, count) => plan[operation][count - 1],
    )
    const begun = rival ? other.write(nothing, { ...content, claim: 'theirs' }, deadline()) : undefined
    const first = await own.write(nothing, content, deadline())
    const begins = first.result === 'written' ? first : await begun
    const found = begins?.result === 'written' ? begins.found : undefined
    const second = found && (await own.write(found, refused, deadline()))
    await runtime.advance(5 * 60_000)

    for (const written of [first, second])
      if (written?.result === 'written') expect(history).toContainEqual(written.found.row)
    const [{ version: from = 0 } = {}] = history
    expect(history.map(({ version }) => version)).toEqual(history.map((_row, index) => from + index))
  })
  await fc.assert(property, { numRuns: 300 })
}, 60_000)

describe('a settlement', () => {
  it.each([
    ['the call has no time left', 2000, false],
    ['the caller has given up', 0, true],
  ])('a settlement is written although %s', async (_what, passes, aborts) => {
    const { open, own, runtime, deadline, stored } = journal()
    const controller = new AbortController()
    const end = deadline(1000, controller.signal)
    const found = await open()
    await runtime.advance(passes)
    if (aborts) controller.abort()
    await writes(own.writeOutcome(found, refused, end))
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
    expect((await own.writeOutcome(found, refused, end)).result).toBe('doubt')
    expect(runtime.monotonic() - begun).toBeLessThanOrEqual(1000)
  })

  it('a settlement is awaited as long as the call has time', async () => {
    const { open, own, deadline } = journal({ update: 'answers_late', get: 'hangs' })
    await writes(own.writeOutcome(await open(), refused, deadline()))
  })
})

describe('a proof', () => {
  const doubted = { ...content, ambiguous: true, attempts: 3 }

  it.each<[string, RecordContent, Faults, number]>([
    ['closed it', refused, {}, TOTAL],
    ['left it in doubt', doubted, {}, TOTAL],
    ['closed it, although the call has no time left', refused, {}, 0],
    ['closed it, where the store is slow and there is time', refused, { get: 'answers_late' }, TOTAL],
  ])('a proof overwrites what others have written: they %s', async (_what, theirs, broken, total) => {
    const { open, proof, other, deadline, stored } = journal(broken)
    const found = await open()
    await writes(other.write(found, theirs, deadline()))
    const record = await proof(found, deadline(total))
    const proven = { state: 'created', version: found.record.version + 2 }
    expect(record).toMatchObject({ ...proven, attempts: theirs.attempts })
    expect(await stored()).toMatchObject(proven)
  })

  it('a proof needs no write if the newest record has it', async () => {
    const { open, proof, other, deadline, store } = journal()
    const found = await open()
    const theirs = await writes(other.write(found, created, deadline()))
    expect(await proof(found, deadline())).toEqual(theirs.record)
    expect(await proof(theirs, deadline())).toBe(theirs.record)
    expect(store.calls.filter((call) => call === 'update')).toHaveLength(1)
  })

  it.each([
    ['rejects the write', { update: 'rejects', get: 'rejects' }],
    ['does not show the newest version', { update: 'loses', get: 'rejects' }],
    ['does not respond', { update: 'loses', get: 'hangs' }],
  ] as const)('a proof that is not stored is reported soon if the store %s', async (_what, broken) => {
    const { open, proof, runtime, deadline } = journal(broken)
    const found = await open()
    const begun = runtime.monotonic()
    expect(await proof(found, deadline(1000))).toBeUndefined()
    expect(runtime.monotonic() - begun).toBeLessThanOrEqual(2000)
  })

  it.each([
    [7, true],
    [8, false],
  ])('a proof that loses %i writes is stored: %j', async (losses, stored) => {
    const { open, proof, store, deadline } = journal((operation, count) =>
      operation === 'update' && count <= losses ? 'loses' : undefined,
    )
    expect((await proof(await open(), deadline())) !== undefined).toBe(stored)
    expect(store.calls.filter((call) => call === 'update')).toHaveLength(8)
  })

  it.each(['forgotten', 'pruned'])('a proof is stored again if the record was %s meanwhile', async (gone) => {
    const { open, proof, other, rows, runtime, deadline, stored } = journal()
    const found = await open()
    const theirs = await writes(other.write(found, refused, deadline()))
    const limits = { createdBefore: 0, rejectedBefore: runtime.now() + 1 }
    if (gone === 'pruned') await rows.prune('s', limits)
    else await other.empty(theirs, deadline())
    expect(await proof(found, deadline())).toMatchObject({ state: 'created' })
    expect((await stored())?.state).toBe('created')
  })
})

it('a removal leaves the row, and fails to remove what another call has written since', async () => {
  const { own, runtime, deadline, stored } = journal()
  const found = await writes(own.write(nothing, created, deadline()))
  const newer = await writes(own.write(found, { ...created, attempts: 2 }, deadline()))
  expect(await own.empty(found, deadline())).toBe(false)
  expect(await stored()).toEqual(newer.row)
  expect(await own.empty(newer, deadline())).toBe(true)
  expect(await stored()).toEqual(emptyRow('s', ID, runtime.now(), newer.row))
})

describe('a fence against a write that was given up', () => {
  it('a fence is the next version of the found row, with the same text', async () => {
    const { own, runtime, deadline, stored } = journal()
    const found = await writes(own.write(nothing, refused, deadline()))
    runtime.jump(5)
    expect(await own.fence(found, deadline())).toBe(true)
    expect(await stored()).toEqual({
      ...found.row,
      version: found.record.version + 1,
      updatedAt: runtime.now(),
    })
    expect(await own.write(found, content, deadline())).toEqual({ result: 'lost' })
  })

  it('a fence occupies a row that does not exist', async () => {
    const { own, runtime, deadline, stored } = journal()
    expect(await own.fence(nothing, deadline())).toBe(true)
    expect(await stored()).toEqual(emptyRow('s', ID, runtime.now()))
    expect(await own.write(nothing, content, deadline())).toEqual({ result: 'lost' })
    expect(await own.load(ID, deadline())).toMatchObject({ row: { data: 'forgotten' } })
  })

  it.each<[boolean, StoreFault]>([
    [true, 'loses_answer'],
    // A refused fence shows that the store takes no write, and so no late one either.
    [true, 'refuses'],
    [false, 'loses'],
    [false, 'rejects'],
    [false, 'hangs'],
    [false, 'rejects_done_late'],
  ])('a fence shuts the door (%s) if the store %s', async (shut, fault) => {
    const { own, deadline } = journal({ insert: fault })
    expect(await own.fence(nothing, deadline())).toBe(shut)
  })

  it('a fence needs no codec, and a write is in doubt without one', async () => {
    const { own, deadline } = journal({}, { encrypt: throwing('no'), decrypt: (text) => text })
    expect((await own.write(nothing, content, deadline())).result).toBe('doubt')
    expect(await own.fence(nothing, deadline())).toBe(true)
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

it.each([
  [5_000, 'deadline'],
  [TOTAL, 'The store did not respond.'],
])('a read of %d ms, whose timers fire early, ends by %s', async (total, end) => {
  const runtime = fakeRuntime({ auto: true })
  const early = { ...runtime, setTimer: (end: () => void, ms: number) => runtime.setTimer(end, ms - 0.4) }
  const store = faultyStore(new MemoryStore(), runtime, () => 'hangs')
  const read = journalOver(store, early).load(ID, new Deadline(early, total, undefined))
  const ended = read.then((over): string => Object(over).why).catch(({ message }: Error) => message)
  expect(await ended).toContain(end)
})
