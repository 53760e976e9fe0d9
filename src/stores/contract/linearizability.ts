import type { InsertResult, StoredRow } from '../store.ts'
import { sameRow, show } from './expect.ts'

/**
 * When a call began and ended, and which client made it.
 *
 * Times are ticks of one counter that all clients share, so no two are equal.
 */
export interface CallSpan {
  /** Number of the client, from 0. */
  readonly client: number
  /** Tick just before the call. */
  readonly called: number
  /**
   * Tick just after the call's promise settled.
   *
   * `Infinity` if the result is `'unknown'`, because the call may take effect at any later time.
   */
  readonly returned: number
}

/**
 * One call on one row, and its result.
 *
 * A rejected write has the result `'unknown'`, because the store may have applied the write.
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

const MAX_CALLS_LISTED = 16

/**
 * Checks whether a history is linearizable: whether its calls, made one at a time in some order,
 * could return the recorded results.
 *
 * In that order, a call that returned before another call began must come first. Do not prune rows
 * while you record the history.
 *
 * Uses the algorithm of Wing and Gong with Lowe's cache, for one row at a time.
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

function isLinearizable(calls: readonly RecordedCall[]): boolean {
  const tried = new Set<string>()
  /**
   * Bit n of `done` is set if the order already contains call n. `row` is the row after those
   * calls.
   */
  const search = (done: bigint, row: StoredRow | undefined): boolean => {
    let firstReturn = Number.POSITIVE_INFINITY
    for (const [index, call] of calls.entries()) {
      if (((done >> BigInt(index)) & 1n) === 0n) firstReturn = Math.min(firstReturn, call.returned)
    }
    // Only calls with unknown results remain. They contradict nothing, because the store may never
    // have applied them.
    if (firstReturn === Number.POSITIVE_INFINITY) return true
    const position = `${done} ${row?.version} ${row?.data}`
    if (tried.has(position)) return false
    tried.add(position)
    for (const [index, call] of calls.entries()) {
      // A call that began after `firstReturn` must come after the call that returned then.
      if (((done >> BigInt(index)) & 1n) === 1n || call.called > firstReturn) continue
      const outcome = apply(call, row)
      if (outcome.explained && search(done | (1n << BigInt(index)), outcome.row)) return true
    }
    return false
  }
  return search(0n, undefined)
}

/**
 * Applies the call to a model of the store.
 *
 * `explained` is true if the model returns the recorded result.
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

function explain(name: string, calls: readonly RecordedCall[]): string {
  const inOrder = calls
    .filter(({ returned }) => Number.isFinite(returned))
    .sort((a, b) => a.returned - b.returned)
  for (const last of inOrder) {
    const soFar = calls.flatMap((call) => knownAt(last.returned, call))
    if (isLinearizable(soFar)) continue
    const shown = soFar.sort((a, b) => a.called - b.called).slice(-MAX_CALLS_LISTED)
    return [
      `no order of the calls on row ${name} explains their results. The first contradiction:`,
      `  ${describeCall(last)}`,
      'The last calls up to that point, in the order in which they began:',
      ...shown.map((call) => `  ${describeCall(call)}`),
    ].join('\n')
  }
  return `no order of the calls on row ${name} explains their results`
}

/**
 * A write in progress at `tick` has an unknown result, because it may already have been applied.
 */
function knownAt(tick: number, call: RecordedCall): RecordedCall[] {
  if (call.called > tick) return []
  if (call.returned <= tick) return [call]
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
  const [called, returned] = [call.called, call.returned].map((tick) => String(tick).padStart(5))
  const span = `${called} to ${returned}, client ${call.client}:`
  const unknown = 'unknown result'
  const brief = (row: StoredRow | undefined): string =>
    row === undefined ? 'nothing' : `version ${row.version}, ${show(row.data)}`
  switch (call.kind) {
    case 'get':
      return `${span} get found ${brief(call.found)}`
    case 'insert': {
      const { result } = call
      const outcome =
        result === 'unknown' ? unknown : result.inserted ? 'succeeded' : `found ${brief(result.current)}`
      return `${span} insert of ${brief(call.row)}: ${outcome}`
    }
    case 'update': {
      const outcome = call.updated === 'unknown' ? unknown : `returned ${call.updated}`
      return `${span} update from version ${call.expectedVersion} to ${brief(call.row)}: ${outcome}`
    }
  }
}
