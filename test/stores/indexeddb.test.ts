import { storeContract } from 'customer-ordering-sdk/stores/contract'
import { IndexedDbStore } from 'customer-ordering-sdk/stores/indexeddb'
import * as imitation from 'fake-indexeddb'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { EVERYTHING, makeRow, makeRows, nextVersion, SCOPE, walk } from '../../src/stores/contract/rows.ts'
import { deferred } from '../support/calls.ts'
import { codeOf, expectFailure, expectFailures, failureOf, readsOf } from './support/failures.ts'

const { IDBFactory, IDBKeyRange, IDBObjectStore, IDBDatabase: ImitatedDatabase } = imitation
const NAME = 'orders'

beforeEach(() => {
  vi.stubGlobal('indexedDB', new IDBFactory())
  vi.stubGlobal('IDBKeyRange', IDBKeyRange)
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const open = () => new IndexedDbStore({ name: NAME })

function ended(request: IDBOpenDBRequest): Promise<'success' | 'error'> {
  return new Promise((resolve) => {
    request.onsuccess = () => resolve('success')
    request.onerror = () => resolve('error')
  })
}

/** Another program's connection, which closes for others only if told to. */
async function openElsewhere(version?: number): Promise<IDBDatabase> {
  const request = indexedDB.open(NAME, version)
  await ended(request)
  return request.result
}

/** Collects the connections opened from now on. */
function watchOpening(): readonly IDBDatabase[] {
  const opened: IDBDatabase[] = []
  const factory = indexedDB
  const original = factory.open.bind(factory)
  vi.spyOn(factory, 'open').mockImplementation((name, version) => {
    const request = original(name, version)
    request.addEventListener('success', () => opened.push(request.result))
    return request
  })
  return opened
}

/** A store with row 1, and its connections. */
async function openWithRow() {
  const opened = watchOpening()
  const store = open()
  await store.insert(makeRow(1))
  return { store, opened }
}

/** Makes every request to open the database fail with this error name. */
function refuseOpening(name: string): void {
  vi.spyOn(indexedDB, 'open').mockImplementation(() => {
    const request = { error: new DOMException('secret text', name) } as IDBOpenDBRequest
    queueMicrotask(() => request.onerror?.(new Event('error')))
    return request
  })
}

/** Aborts the next transaction that adds a row, as the browser would for this reason. */
async function abortNextInsert(store: IndexedDbStore, name: string): Promise<void> {
  // Create the database now, so that adding the row needs no further transaction.
  await store.get(SCOPE, 'none')
  const original = IDBObjectStore.prototype.add
  vi.spyOn(IDBObjectStore.prototype, 'add').mockImplementationOnce(function (this: IDBObjectStore, ...given) {
    const request = original.apply(this, given)
    const { transaction } = this
    transaction.abort()
    Object.defineProperty(transaction, 'error', { value: new DOMException('secret text', name) })
    return request
  })
}

describe('IndexedDbStore on a simulated IndexedDB', () => {
  storeContract({ test: { describe, it }, createStore: open, openSecond: open, reopenStore: open })
})

it.each([undefined, '', 7, null])('IndexedDbStore rejects the name %j', (name) => {
  const options = { name } as unknown as { name: string }
  expect(() => new IndexedDbStore(options)).toThrow(/must be a non-empty string/)
})

it('IndexedDbStore rejects missing options with a StoreError', async () => {
  await expectFailure(() => Reflect.construct(IndexedDbStore, []), /must be a non-empty string/)
})

it.each([0, -1, 1.5, Number.NaN, 2 ** 31])('IndexedDbStore rejects the time limit %d', (openTimeout) => {
  expect(() => new IndexedDbStore({ name: NAME, openTimeout })).toThrow(/whole number of milliseconds/)
})

it('IndexedDbStore checks its options without access to IndexedDB', () => {
  vi.stubGlobal('indexedDB', undefined)
  expect(open().durability).toBe('device')
})

describe('a transaction of IndexedDbStore', () => {
  it('every call runs one transaction with strict durability', async () => {
    const store = open()
    await store.get(SCOPE, 'warm up')
    const begun = vi.spyOn(ImitatedDatabase.prototype, 'transaction')
    await store.insert(makeRow(1))
    await store.insert(makeRow(1))
    await store.update(nextVersion(makeRow(1)), 1)
    await store.update(nextVersion(makeRow(1)), 1)
    await store.prune(SCOPE, EVERYTHING)
    const writes = begun.mock.calls.map(([, mode, options]) => [mode, options])
    expect(writes).toHaveLength(6)
    for (const write of writes) expect(write).toEqual(['readwrite', { durability: 'strict' }])
  })

  it('a write resolves only after its transaction is complete', async () => {
    const store = open()
    await store.get(SCOPE, 'warm up')
    const order: string[] = []
    const original = ImitatedDatabase.prototype.transaction
    vi.spyOn(ImitatedDatabase.prototype, 'transaction').mockImplementation(function (
      this: IDBDatabase,
      ...given: Parameters<IDBDatabase['transaction']>
    ) {
      const transaction = original.apply(this, given)
      transaction.addEventListener('complete', () => order.push('complete'))
      return transaction
    })
    await store.insert(makeRow(1)).then(() => order.push('resolved'))
    expect(order).toEqual(['complete', 'resolved'])
  })

  const NOTHING = /^Cannot write to the order store in .* Nothing was written\.$/s
  const UNKNOWN = /may or may not have happened\.$/
  it.each([
    ['QuotaExceededError', 'nothing was written', NOTHING],
    ['DataError', 'nothing was written', NOTHING],
    ['AbortError', 'the outcome is unknown', UNKNOWN],
    ['UnknownError', 'the outcome is unknown', UNKNOWN],
    ['SomethingNewError', 'the outcome is unknown', UNKNOWN],
  ])('after %s, the error says that %s, and the store recovers', async (name, _, reason) => {
    const store = open()
    await abortNextInsert(store, name)
    const failure = await expectFailure(() => store.insert(makeRow(1)), reason, name)
    expect(failure.message).not.toContain('secret')
    expect(String(failure.cause)).not.toContain('secret')
    expect(await store.insert(makeRow(1))).toEqual({ inserted: true })
  })

  it('after a failed transaction, the next call opens a new connection, and closes the old one', async () => {
    const opened = watchOpening()
    const store = open()
    await abortNextInsert(store, 'UnknownError')
    await failureOf(() => store.insert(makeRow(1)))
    await store.insert(makeRow(1))
    expect(opened).toHaveLength(2)
    expect(() => opened[0]?.transaction('rows')).toThrow()
  })

  it.each([
    ['without an event', () => {}],
    ['with an event', (connection?: IDBDatabase) => connection?.onclose?.(new Event('close'))],
  ])('the store reconnects after the browser has closed its connection %s', async (_, report) => {
    const { opened, store } = await openWithRow()
    opened[0]?.close()
    report(opened[0])
    expect(await store.get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
    expect(opened).toHaveLength(2)
  })

  it('the store rejects a value that is not a row instead of returning it', async () => {
    const { store } = await openWithRow()
    const database = await openElsewhere()
    database
      .transaction('rows', 'readwrite')
      .objectStore('rows')
      .put({ ...makeRow(1), data: 7, openId: makeRow(1).id })
    database.close()
    const writes = [() => store.insert(makeRow(1)), () => store.update(nextVersion(makeRow(1)), 1)]
    await expectFailures([...readsOf(store), ...writes], 'contains a row that it did not write')
  })
})

it('a page or a pruning batch has a few hundred rows at most, whatever the limit', async () => {
  const store = open()
  const rows = makeRows(501, { open: false, state: 'created' })
  for (const row of rows) await store.insert(row)
  const page = await store.list(SCOPE, { limit: 1_000_000 })
  expect(page.rows).toHaveLength(500)
  expect(page.next).toBeDefined()
  expect(await walk((options) => store.list(SCOPE, options), 1_000)).toHaveLength(501)
  const begun = vi.spyOn(ImitatedDatabase.prototype, 'transaction')
  expect(await store.prune(SCOPE, EVERYTHING)).toBe(501)
  expect(begun).toHaveBeenCalledTimes(3)
})

it('the store rejects a cursor that is not the end of a page', async () => {
  await expectFailure(() => open().list(SCOPE, { limit: 1, after: 'x' }), /`after`/)
})

it('list returns each of several rows with the same update time, whatever their ids', async () => {
  const store = open()
  const rows = ['a b', 'a\nb', '', ' '].map((id) => ({ ...makeRow(1), id }))
  for (const row of rows) await store.insert(row)
  const found = await walk((options) => store.list(SCOPE, options), 1)
  expect(found.map(({ id }) => id).toSorted()).toEqual(rows.map(({ id }) => id).toSorted())
})

it('opening requires a platform with IndexedDB', async () => {
  for (const none of [undefined, null]) {
    vi.stubGlobal('indexedDB', none)
    await expectFailure(() => open().insert(makeRow(1)), /needs IndexedDB/)
  }
})

it('the error states that the browser denies access to IndexedDB', async () => {
  const original = Object.getOwnPropertyDescriptor(globalThis, 'indexedDB')
  Object.defineProperty(globalThis, 'indexedDB', {
    configurable: true,
    get: () => {
      throw new DOMException('secret text', 'SecurityError')
    },
  })
  const failure = await failureOf(() => open().insert(makeRow(1)))
  Object.defineProperty(globalThis, 'indexedDB', original ?? {})
  expect(codeOf(failure)).toBe('SecurityError')
  expect(failure.message).toMatch(/blocks site data/)
})

it.each([
  ['InvalidStateError', /private window/],
  ['SecurityError', /blocks site data/],
  ['QuotaExceededError', /no more space/],
  ['UnknownError', /cannot read or write its files/],
  ['VersionError', /a newer version of customer-ordering-sdk/],
  ['SomethingNewError', /the browser reports SomethingNewError/],
])('the error explains an opening that failed with %s', async (name, meaning) => {
  refuseOpening(name)
  const reason = /^Cannot open the order store in the IndexedDB database "orders": /
  const failure = await expectFailure(() => open().insert(makeRow(1)), reason, name)
  expect(failure.message).toMatch(meaning)
  expect(failure.message).not.toContain('secret')
})

it('the next call tries to open the database again', async () => {
  const store = open()
  refuseOpening('UnknownError')
  await failureOf(() => store.insert(makeRow(1)))
  vi.restoreAllMocks()
  expect(await store.insert(makeRow(1))).toEqual({ inserted: true })
})

it('concurrent calls open the database once', async () => {
  const opened = watchOpening()
  const store = open()
  await Promise.all(makeRows(10).map((row) => store.insert(row)))
  expect(opened).toHaveLength(1)
})

it('opening gives up in time if the browser does not respond, and closes a late connection', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const close = vi.fn()
  const request = { result: { close } } as unknown as IDBOpenDBRequest
  vi.spyOn(indexedDB, 'open').mockReturnValue(request)
  const failure = failureOf(() => open().insert(makeRow(1)))
  await vi.advanceTimersByTimeAsync(3_000)
  expect((await failure).message).toMatch(/did not respond within 3000 ms/)
  request.onsuccess?.(new Event('success'))
  expect(close).toHaveBeenCalledOnce()
})

it('opening leaves no timer behind', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  await openWithRow()
  refuseOpening('UnknownError')
  await failureOf(() => open().insert(makeRow(1)))
  expect(vi.getTimerCount()).toBe(0)
})

it('the error names what blocks an upgrade of the database', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const request = {} as IDBOpenDBRequest
  vi.spyOn(indexedDB, 'open').mockReturnValue(request)
  const failure = failureOf(() => open().insert(makeRow(1)))
  await vi.advanceTimersByTimeAsync(1)
  request.onblocked?.(new Event('blocked') as IDBVersionChangeEvent)
  await vi.advanceTimersByTimeAsync(3_000)
  const reason = /another tab of this site keeps an older version of the database open/
  expect((await failure).message).toMatch(reason)
})

it.each([
  ['of another program', undefined, /other code uses the same name/, 'NotFoundError'],
  ['that a newer version created', 2, /a newer version of customer-ordering-sdk/, 'VersionError'],
])('the store rejects a database %s', async (_, version, reason, code) => {
  ;(await openElsewhere(version)).close()
  await expectFailure(() => open().insert(makeRow(1)), reason, code)
})

it('the store releases its connection so that a newer version can upgrade the database', async () => {
  const { store } = await openWithRow()
  const newer = await openElsewhere(2)
  expect(newer.version).toBe(2)
  newer.close()
  await expectFailure(() => store.get(SCOPE, makeRow(1).id), /a newer version/)
})

it('the store releases its connection for a deletion, and does not create the database again', async () => {
  const { store } = await openWithRow()
  expect(await ended(indexedDB.deleteDatabase(NAME))).toBe('success')
  for (const call of [() => store.insert(makeRow(1)), () => store.listOpen(SCOPE, { limit: 1 })]) {
    await expectFailure(call, /was deleted while its order store was in use/)
  }
  expect(await indexedDB.databases()).toEqual([])
  expect(await open().insert(makeRow(1))).toEqual({ inserted: true })
})

it.each([
  ['deleted', async () => {}, []],
  ['deleted and recreated', () => open().insert(makeRow(2)), [NAME]],
])('the store detects that its database was %s while it was closed', async (_, recreate, names) => {
  const { opened, store } = await openWithRow()
  opened[0]?.close()
  await ended(indexedDB.deleteDatabase(NAME))
  await recreate()
  await expectFailure(() => store.insert(makeRow(1)), /was deleted/)
  await expectFailure(() => store.get(SCOPE, makeRow(1).id), /was deleted/)
  expect((await indexedDB.databases()).map(({ name }) => name)).toEqual(names)
})

it("close ends in time even if the browser never responds to the read of the database's mark", async () => {
  await open().insert(makeRow(1))
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const stuck = {
    mode: 'readonly',
    objectStoreNames: ['marks'],
    objectStore: () => ({ get: () => ({}) }),
    abort: () => {},
  } as unknown as IDBTransaction
  const reading = deferred()
  vi.spyOn(ImitatedDatabase.prototype, 'transaction').mockImplementation(() => {
    reading.resolve()
    return stuck
  })
  const store = open()
  const failure = failureOf(() => store.get(SCOPE, makeRow(1).id))
  await reading.promise
  const closed = store.close()
  await vi.advanceTimersByTimeAsync(3_000)
  await closed
  expect((await failure).message).toMatch(/did not respond within 3000 ms/)
  expect(vi.getTimerCount()).toBe(0)
})

it('after close, other pages can delete the database', async () => {
  const { store } = await openWithRow()
  await store.close()
  expect(await ended(indexedDB.deleteDatabase(NAME))).toBe('success')
})

it('close lets earlier calls finish and rejects later ones', async () => {
  const store = open()
  const [result] = await Promise.all([store.insert(makeRow(1)), store.close()])
  expect(result).toEqual({ inserted: true })
  await expectFailure(() => store.get(SCOPE, makeRow(1).id), /was closed/)
  expect(await open().get(SCOPE, makeRow(1).id)).toEqual(makeRow(1))
})

it('close does nothing if the store was never opened', async () => {
  await open().close()
  expect(await indexedDB.databases()).toEqual([])
  const store = open()
  refuseOpening('UnknownError')
  const write = failureOf(() => store.insert(makeRow(1)))
  await store.close()
  expect((await write).message).toMatch(/Cannot open/)
})
