import { StoreError } from '../../src/errors.ts'
import type { Runtime } from '../../src/runtime.ts'
import type { OrderStore, StoredRow } from '../../src/stores/store.ts'
import { storeOver } from './store-over.ts'

/** What goes wrong with one operation of a store. */
export type StoreFault =
  /** Throws before it returns a promise. */
  | 'throws'
  /** Rejects; nothing was done. */
  | 'rejects'
  /** Rejects, and is certain that nothing was or will be done: a full disk. */
  | 'refuses'
  /** Does nothing and never answers. */
  | 'hangs'
  /** Done at once, answered two seconds later. */
  | 'answers_late'
  /** Done, but the answer is lost: it rejects. */
  | 'loses_answer'
  /** Done, and never answered. */
  | 'done_unanswered'
  /** Never answered; done a minute later, if it still can be. */
  | 'done_late'
  /** Rejects; done a minute later, if it still can be: a statement whose client has stopped waiting. */
  | 'rejects_done_late'
  /** Answers that another writer was faster; nothing was done. */
  | 'loses'

export type StoreOperation = 'get' | 'insert' | 'update'

/** Decides about an operation; `count` is 1 for the first one of its name. */
export type StorePlan = (operation: StoreOperation, count: number, row?: StoredRow) => StoreFault | undefined

/** That fault for every operation of that name, or only for those whose number it is. */
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

/** The first write of that name is given up and yet arrives a minute later; those after it fail. */
export function firstWriteLate(name: 'insert' | 'update'): StorePlan {
  return (operation, count) => {
    if (operation !== name) return undefined
    return count === 1 ? 'rejects_done_late' : 'rejects'
  }
}

/** A store object of its own over the rows of another, as another process has it, with faults. */
export function faultyStore(
  rows: OrderStore,
  runtime: Runtime,
  plan: StorePlan = () => undefined,
): OrderStore & { readonly calls: StoreOperation[] } {
  const calls: StoreOperation[] = []
  const after = (milliseconds: number): Promise<void> =>
    new Promise((resolve) => {
      runtime.setTimer(resolve, milliseconds)
    })
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
