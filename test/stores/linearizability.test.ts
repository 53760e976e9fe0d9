import { explainHistory, type RecordedCall, recordHistory } from 'customer-ordering-sdk/stores/contract'
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { MemoryStore } from '../../src/stores/memory.ts'
import type { StoredRow } from '../../src/stores/store.ts'

/** A version of the one row in these histories. `mark` distinguishes writes of the same version. */
function row(version: number, mark = ''): StoredRow {
  return {
    scope: 's',
    id: 'r',
    version,
    open: true,
    state: 'open',
    createdAt: 0,
    updatedAt: 0,
    data: `v${version}${mark}`,
  }
}

/** The possible content of the store after the call, if the call can come next: one element or none. */
function outcomes(call: RecordedCall, current: StoredRow | undefined): readonly (StoredRow | undefined)[] {
  switch (call.kind) {
    case 'get':
      return call.found?.data === current?.data ? [current] : []
    case 'insert': {
      if (call.result === 'unknown') return [current ?? call.row]
      if (call.result.inserted) return current === undefined ? [call.row] : []
      return call.result.current.data === current?.data ? [current] : []
    }
    case 'update': {
      const applies = current?.version === call.expectedVersion
      if (call.updated !== 'unknown' && call.updated !== applies) return []
      return [applies ? call.row : current]
    }
  }
}

/** Tries every order without shortcuts, so that it is slow but simple. */
function isExplainedByBruteForce(calls: readonly RecordedCall[]): boolean {
  const place = (left: readonly RecordedCall[], current: StoredRow | undefined): boolean => {
    if (left.every(({ returned }) => returned === Number.POSITIVE_INFINITY)) return true
    const first = left.filter((call) => left.every((other) => other.returned >= call.called))
    return first.some((call) =>
      outcomes(call, current).some((next) =>
        place(
          left.filter((other) => other !== call),
          next,
        ),
      ),
    )
  }
  return place(calls, undefined)
}

it('explainHistory checks each row separately, and names the first call that contradicts the history', () => {
  const one = { scope: 's', id: 'r', client: 0 }
  const written: RecordedCall = {
    ...one,
    called: 1,
    returned: 2,
    kind: 'insert',
    row: row(1),
    result: { inserted: true },
  }
  const nothing: RecordedCall = { ...one, called: 3, returned: 4, kind: 'get', found: undefined }
  const found: RecordedCall = { ...one, called: 5, returned: 6, kind: 'get', found: row(1) }
  expect(explainHistory([written, { ...nothing, id: 'other' }, found])).toBeUndefined()
  expect(explainHistory([written, nothing, found])).toMatch(
    /The first contradiction:\n +3 to +4, client 0: get found nothing\n/,
  )
})

it('explainHistory agrees with an exhaustive search on every small history', () => {
  const versions = ['1a', '1b', '2a', '2b', '3a'].map(([version, text]) => row(Number(version), text))
  const written = fc.constantFrom(undefined, ...versions)
  const mark = fc.constantFrom('a', 'b')
  const result = fc.constantFrom<boolean | 'unknown'>(true, false, 'unknown')
  const action = fc.oneof(
    written.map((found) => ({ kind: 'get', scope: 's', id: 'r', found }) as const),
    fc.tuple(mark, written, fc.boolean()).map(([text, current, unknown]) => {
      const outcome =
        current === undefined ? ({ inserted: true } as const) : ({ inserted: false, current } as const)
      return { kind: 'insert', row: row(1, text), result: unknown ? 'unknown' : outcome } as const
    }),
    fc
      .tuple(mark, fc.integer({ min: 1, max: 2 }), result)
      .map(
        ([text, from, updated]) =>
          ({ kind: 'update', row: row(from + 1, text), expectedVersion: from, updated }) as const,
      ),
  )
  const history = fc.array(fc.tuple(action, fc.nat(20), fc.nat(6)), { maxLength: 6 }).map((parts) =>
    parts.map(([part, start, length], index): RecordedCall => {
      const unknown =
        (part.kind === 'insert' && part.result === 'unknown') ||
        (part.kind === 'update' && part.updated === 'unknown')
      // Use twice the index, so that no two times are equal.
      const called = start * 100 + index * 2
      const returned = unknown ? Number.POSITIVE_INFINITY : (start + length) * 100 + index * 2 + 1
      return { ...part, client: index, called, returned }
    }),
  )
  let accepted = 0
  fc.assert(
    fc.property(history, (calls) => {
      const explained = isExplainedByBruteForce(calls)
      if (explained && calls.length > 2) accepted++
      expect(explainHistory(calls) === undefined).toBe(explained)
    }),
    { numRuns: 3_000, seed: 42 },
  )
  // Guards against a generator that creates only contradictions.
  expect(accepted).toBeGreaterThan(50)
})

it('recordHistory repeats a history exactly for the same seed and store timing', async () => {
  const one = await recordHistory([new MemoryStore()], { seed: 5 })
  const again = await recordHistory([new MemoryStore()], { seed: 5 })
  const other = await recordHistory([new MemoryStore()], { seed: 6 })
  expect(again).toEqual(one)
  expect(other).not.toEqual(one)
})

it('recordHistory produces overlapping calls and losing writes', async () => {
  const { calls, failures } = await recordHistory([new MemoryStore()])
  expect(failures).toEqual([])
  expect(calls).toHaveLength(1_600)
  const overlapping = calls.filter((call) =>
    calls.some((other) => other.called < call.called && other.returned > call.called),
  )
  const refused = calls.filter((call) => call.kind === 'update' && call.updated === false)
  const late = calls.filter(
    (call) => call.kind === 'insert' && call.result !== 'unknown' && !call.result.inserted,
  )
  for (const some of [overlapping, refused, late]) expect(some.length).toBeGreaterThan(100)
})

it('recordHistory records rejected writes as unknown and continues', async () => {
  class Flaky extends MemoryStore {
    #calls = 0
    override async update(next: StoredRow, expectedVersion: number): Promise<boolean> {
      const updated = await super.update(next, expectedVersion)
      // The write happened, but its response is lost.
      if (++this.#calls % 5 === 0) throw new Error('connection lost')
      return updated
    }
  }
  const { calls, failures } = await recordHistory([new Flaky()], { clients: 4, operations: 50 })
  expect(failures.length).toBeGreaterThan(5)
  const unknown = calls.filter((call) => call.kind === 'update' && call.updated === 'unknown')
  expect(unknown).toHaveLength(failures.length)
  expect(explainHistory(calls)).toBeUndefined()
})
