import type { InsertResult, StoredRow } from '../store.ts'
import { sameRow, show } from './expect.ts'

/**
 * Time and client of a call. Times are ticks of one clock that all clients share; no two are equal.
 */
export interface CallSpan {
  /** Number of the client, from 0. */
  readonly client: number
  /** Tick right before the call. */
  readonly called: number
  /**
   * Tick after the call's promise settled. `Infinity` if the result is `'unknown'`: the call may
   * take effect at any later time.
   */
  readonly returned: number
}

/**
 * One call on one row, and its result. A rejected write has the result `'unknown'`: it may have
 * been applied.
 */
export type RecordedCall =
  | (CallSpan & {
      readonly kind: 'get'
      readonly scope: string
      readonly id: string
      readonly found: StoredRow | undefined
    })
  | (CallSpan & {
      readonly kind: 'insert'
      readonly row: StoredRow
      readonly result: InsertResult | 'unknown'
    })
  | (CallSpan & {
      readonly kind: 'update'
      readonly row: StoredRow
      readonly expectedVersion: number
      readonly updated: boolean | 'unknown'
    })

/** Number of calls that an explanation shows: the last ones before the contradiction. */
const LISTED = 16

/**
 * Checks whether a history is linearizable: in some order of the calls, each takes effect between
 * its start and its end, and a store without concurrency returns the same results. The search is
 * Wing and Gong's, row by row, with Lowe's cache of visited positions. Do not prune rows while you
 * record the history.
 *
 * @returns undefined if there is such an order for every row, otherwise a description of the first
 * contradiction
 * @example
 * const { calls } = await recordHistory([new MyStore()])
 * console.log(explainHistory(calls) ?? 'linearizable')
 */
export function explainHistory(calls: readonly RecordedCall[]): string | undefined {
  const rows = new Map<string, RecordedCall[]>()
  for (const call of calls) {
    const name =
      call.kind === 'get'
        ? JSON.stringify([call.scope, call.id])
        : JSON.stringify([call.row.scope, call.row.id])
    const sameRowCalls = rows.get(name)
    if (sameRowCalls === undefined) rows.set(name, [call])
    else sameRowCalls.push(call)
  }
  for (const [name, rowCalls] of rows) {
    if (!isLinearizable(rowCalls)) return explain(name, rowCalls)
  }
  return undefined
}

/** True if some order explains all calls on one row. */
function isLinearizable(calls: readonly RecordedCall[]): boolean {
  const tried = new Set<string>()
  /**
   * `done` has a bit for each call that the order already contains. `row` is the row after those
   * calls.
   */
  const search = (done: bigint, row: StoredRow | undefined): boolean => {
    let firstReturn = Number.POSITIVE_INFINITY
    for (const [index, call] of calls.entries()) {
      if (((done >> BigInt(index)) & 1n) === 0n) firstReturn = Math.min(firstReturn, call.returned)
    }
    // The remaining calls have unknown results and may never have been applied.
    if (firstReturn === Number.POSITIVE_INFINITY) return true
    const position = `${done} ${row?.version} ${row?.data}`
    if (tried.has(position)) return false
    tried.add(position)
    for (const [index, call] of calls.entries()) {
      // A call that began after another call returned must come after it.
      if (((done >> BigInt(index)) & 1n) === 1n || call.called > firstReturn) continue
      const outcome = apply(call, row)
      if (outcome.explained && search(done | (1n << BigInt(index)), outcome.row)) return true
    }
    return false
  }
  return search(0n, undefined)
}

/**
 * Applies the call to a model of the store. `explained` is true if the model returns the recorded
 * result.
 */
function apply(
  call: RecordedCall,
  row: StoredRow | undefined,
): { readonly explained: boolean; readonly row: StoredRow | undefined } {
  switch (call.kind) {
    case 'get':
      return { explained: matches(call.found, row), row }
    case 'insert': {
      const { result } = call
      const explained =
        result === 'unknown' || (result.inserted ? row === undefined : matches(result.current, row))
      return { explained, row: row ?? call.row }
    }
    case 'update': {
      const applies = row?.version === call.expectedVersion
      return {
        explained: call.updated === 'unknown' || call.updated === applies,
        row: applies ? call.row : row,
      }
    }
  }
}

function matches(one: StoredRow | undefined, other: StoredRow | undefined): boolean {
  return one === undefined || other === undefined ? one === other : sameRow(one, other)
}

/** Describes the first call whose result contradicts the calls so far. */
function explain(name: string, calls: readonly RecordedCall[]): string {
  const inOrder = calls
    .filter(({ returned }) => Number.isFinite(returned))
    .sort((a, b) => a.returned - b.returned)
  for (const last of inOrder) {
    const soFar = calls.flatMap((call) => upTo(last.returned, call))
    if (isLinearizable(soFar)) continue
    const shown = soFar.sort((a, b) => a.called - b.called).slice(-LISTED)
    return [
      `no order of the calls on row ${name} explains their results. The first contradiction is`,
      `  ${describeCall(last)}`,
      `The last calls before it, in the order of their start:`,
      ...shown.map((call) => `  ${describeCall(call)}`),
    ].join('\n')
  }
  return `no order of the calls on row ${name} explains their results`
}

/** Returns the call as it was at the given tick, pending or done, if it had begun by then. */
function upTo(moment: number, call: RecordedCall): RecordedCall[] {
  if (call.called > moment) return []
  if (call.returned <= moment) return [call]
  const returned = Number.POSITIVE_INFINITY
  switch (call.kind) {
    case 'get':
      return []
    case 'insert':
      return [{ ...call, returned, result: 'unknown' }]
    case 'update':
      return [{ ...call, returned, updated: 'unknown' }]
  }
}

function describeCall(call: RecordedCall): string {
  const span = `${String(call.called).padStart(5)} to ${String(call.returned).padStart(5)}, client ${call.client}:`
  const brief = (row: StoredRow | undefined): string =>
    row === undefined ? 'nothing' : `version ${row.version}, ${show(row.data)}`
  switch (call.kind) {
    case 'get':
      return `${span} get found ${brief(call.found)}`
    case 'insert': {
      const { result } = call
      const outcome =
        result === 'unknown' ? 'is unknown' : result.inserted ? 'won' : `found ${brief(result.current)}`
      return `${span} insert of ${brief(call.row)} ${outcome}`
    }
    case 'update':
      return `${span} update from version ${call.expectedVersion} to ${brief(call.row)} returned ${call.updated}`
  }
}
