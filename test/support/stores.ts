import { StoreError } from '../../src/errors/classes.ts'
import { rowIdOf } from '../../src/identity/keys.ts'
import { decodeRow, type JournalRecord, orderOf } from '../../src/orders/record/record.ts'
import { platformRuntime, type Runtime } from '../../src/runtime.ts'
import type { OrderStore, StoredRow } from '../../src/stores/store.ts'

/** A store that forwards to another one, with some operations replaced. */
export function storeOver(store: OrderStore, own: Partial<OrderStore>): OrderStore {
  return {
    durability: store.durability,
    get: (scope, id) => store.get(scope, id),
    insert: (row) => store.insert(row),
    update: (row, expectedVersion) => store.update(row, expectedVersion),
    listOpen: (scope, options) => store.listOpen(scope, options),
    list: (scope, options) => store.list(scope, options),
    prune: (scope, options) => store.prune(scope, options),
    close: () => store.close(),
    ...own,
  }
}

/** A store that reports every row it has written, and waits for a report that is a promise. */
export function writesNoted(store: OrderStore, written: (row: StoredRow) => unknown): OrderStore {
  return storeOver(store, {
    async insert(row) {
      const result = await store.insert(row)
      const told = result.inserted && written(row)
      if (told instanceof Promise) await told
      return result
    },
    async update(row, expectedVersion) {
      const updated = await store.update(row, expectedVersion)
      const told = updated && written(row)
      if (told instanceof Promise) await told
      return updated
    },
  })
}

/** A store that runs this before each update, with the number of the update. */
export function beforeUpdates(store: OrderStore, act: (count: number) => unknown): OrderStore {
  let count = 0
  return storeOver(store, {
    update: async (row, version) => {
      await act(++count)
      return await store.update(row, version)
    },
  })
}

export type StoreFault =
  /** Throws before it returns a promise. */
  | 'throws'
  /** Rejects. Nothing is written. */
  | 'rejects'
  /** Rejects, and is certain that nothing is or will be written, as with a full disk. */
  | 'refuses'
  /** Does nothing and never responds. */
  | 'hangs'
  /** Applied immediately, and reported two seconds later. */
  | 'answers_late'
  /** Applied, but rejects because the response is lost. */
  | 'loses_answer'
  /** Applied, but never responds. */
  | 'done_unanswered'
  /** Never responds. Applied a minute later, if still possible. */
  | 'done_late'
  /**
   * Rejects. Applied a minute later, if still possible: a statement whose client has stopped
   * waiting.
   */
  | 'rejects_done_late'
  /** Reports that another writer was faster. Nothing is written. */
  | 'loses'

export type StoreOperation = 'get' | 'insert' | 'update'

/** Selects the fault of an operation. `count` is 1 for the first one of its name. */
export type StorePlan = (operation: StoreOperation, count: number, row?: StoredRow) => StoreFault | undefined

/** The fault for every operation of that name, or only for those with these numbers. */
export const on =
  (
    name: StoreOperation,
    fault: StoreFault,
    applies: number | ((count: number) => boolean) = () => true,
  ): StorePlan =>
  (operation, count) =>
    operation === name && (typeof applies === 'number' ? count === applies : applies(count))
      ? fault
      : undefined

/** The first write of that name is abandoned and applied a minute later. Later writes fail. */
export function firstWriteLate(name: 'insert' | 'update'): StorePlan {
  return (operation, count) => {
    if (operation !== name) return undefined
    return count === 1 ? 'rejects_done_late' : 'rejects'
  }
}

/** A separate store object with faults over the rows of another, as another process has. */
export function faultyStore(
  rows: OrderStore,
  runtime: Runtime,
  plan: StorePlan = () => undefined,
): OrderStore & { readonly calls: StoreOperation[] } {
  const calls: StoreOperation[] = []
  const after = (milliseconds: number): Promise<void> =>
    new Promise((resolve) => void runtime.setTimer(resolve, milliseconds))
  const perform = <T>(
    operation: StoreOperation,
    apply: () => Promise<T>,
    lost: T | undefined,
    row?: StoredRow,
  ): Promise<T> => {
    calls.push(operation)
    const fault = plan(operation, calls.filter((call) => call === operation).length, row)
    const broken = (): Error => new Error(`the store ${fault}`)
    switch (fault) {
      case undefined:
        return apply()
      case 'throws':
        throw broken()
      case 'rejects':
        return Promise.reject(broken())
      case 'refuses':
        return Promise.reject(new StoreError('The disk is full; nothing was written.', { applied: false }))
      case 'hangs':
        return new Promise(() => {})
      case 'answers_late':
        return apply().then(async (result) => {
          await after(2000)
          return result
        })
      case 'loses_answer':
        return apply().then(() => Promise.reject(broken()))
      case 'done_unanswered':
        return apply().then(() => new Promise(() => {}))
      case 'done_late':
        void after(60_000).then(apply)
        return new Promise(() => {})
      case 'rejects_done_late':
        void after(60_000).then(apply)
        return Promise.reject(broken())
      case 'loses':
        return lost === undefined ? Promise.reject(broken()) : Promise.resolve(lost)
    }
  }
  const store = storeOver(rows, {
    get: (scope, id) => perform('get', () => rows.get(scope, id), undefined),
    insert: (row) =>
      perform<Awaited<ReturnType<OrderStore['insert']>>>(
        'insert',
        () => rows.insert(row),
        { inserted: false, current: row },
        row,
      ),
    update: (row, version) => perform<boolean>('update', () => rows.update(row, version), false, row),
    close: async () => {},
  })
  return { ...store, calls }
}

/** The record of a slot, if there is a row that was not emptied. Throws if the row is unreadable. */
export async function recordIn(
  store: OrderStore,
  scope: string,
  slot: string,
): Promise<(JournalRecord & { readonly readable: boolean }) | undefined> {
  const row = await store.get(scope, rowIdOf(platformRuntime.deriveId, slot))
  const record = row && (await decodeRow(row, undefined))
  if (record === 'forgotten') return undefined
  if (typeof record === 'string') throw new Error(`the row of ${slot} is ${record}`)
  return record && { ...record, readable: orderOf(record) !== undefined }
}
