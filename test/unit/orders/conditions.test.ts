import { describe, expect, it } from 'vitest'
import { CLOCK_SKEW, isFromFuture, otherKey, otherPayload, startOf } from '../../../src/orders/conditions.ts'
import { known } from '../../../src/orders/engine.ts'
import type { JournalRecord } from '../../../src/orders/record.ts'
import { decide, unknownStep } from '../../../src/orders/rules.ts'
import { MINUTE, NOW } from '../../support/place.ts'
import { here, record, refused, rejected, stale } from './rule-lines.ts'

const SKEWED = NOW + CLOCK_SKEW
const first = (sentAt: number) => ({ first: { sentAt, refused: true } })

describe('a record from the future', () => {
  it.each<[string, boolean, Pick<JournalRecord, 'updatedAt' | 'firstSentAt' | 'first'>]>([
    ['was never sent, whatever wrote it', false, { updatedAt: NOW + 60 * MINUTE }],
    ['bears the mark already', false, { updatedAt: NOW + 60 * MINUTE, firstSentAt: 0, ...first(0) }],
    ['was written and sent now', false, { updatedAt: NOW, firstSentAt: NOW }],
    ['was sent by a clock a little ahead', false, { updatedAt: NOW, firstSentAt: SKEWED }],
    ['was sent by a clock far ahead', true, { updatedAt: SKEWED, firstSentAt: SKEWED + 1 }],
    ['was sent a little after it was written', false, { updatedAt: NOW - CLOCK_SKEW, firstSentAt: NOW }],
    ['was sent long after it was written', true, { updatedAt: NOW - CLOCK_SKEW - 1, firstSentAt: NOW }],
    ['was written by a clock a little ahead', false, { updatedAt: SKEWED, firstSentAt: NOW }],
    ['was written by a clock far ahead', true, { updatedAt: SKEWED + 1, firstSentAt: NOW }],
    ['has a first key from the future', true, { updatedAt: NOW, ...first(SKEWED + 1) }],
    ['has a first key from now', false, { updatedAt: NOW, firstSentAt: NOW, ...first(NOW) }],
  ])('a record that %s is from the future: %s', (_what, expected, times) => {
    expect(isFromFuture(times, NOW)).toBe(expected)
  })
})

describe('the key with which a closed order is sent again', () => {
  it.each([
    ['same', 'the caller gave it', { keyOrigin: 'caller' }],
    ['same', 'the caller gave it and it was never sent', { keyOrigin: 'caller', firstSentAt: undefined }],
    [undefined, 'the caller gave it long ago', { keyOrigin: 'caller', ...stale }],
    ['same', 'it is the first one', {}],
    ['same', 'it is the first one and was never sent', { firstSentAt: undefined }],
    ['next', 'it is the first one and was sent long ago', stale],
    ['same', 'it is random', { keyOrigin: 'random', generation: 3 }],
    ['first', 'the window of the first one is open', { generation: 1, ...first(NOW) }],
    ['same', 'no later one was sent', { generation: 1, firstSentAt: undefined, ...first(0) }],
    ['next', 'a later one was sent', { generation: 1, ...first(0) }],
  ] as const)('the key is %s if %s', (start, _where, changes) => {
    expect(startOf(record(refused(changes)), here)).toBe(start)
  })

  it('the key in conflict is used as long as it may be sent', () => {
    expect(startOf(record(rejected('conflict', { generation: 1, ...first(NOW) })), here)).toBe('same')
    expect(startOf(record(rejected('conflict', stale)), here)).toBeUndefined()
  })
})

describe('a command that wants no order of its own', () => {
  it('a command without its own order has no other key, and another payload', () => {
    const met = [otherKey, otherPayload].map((condition) => condition(record(), here))
    expect(met).toEqual([false, true])
  })
})

describe('a step', () => {
  const row = { scope: 's', id: 'i', version: 2, open: false, createdAt: 0, updatedAt: 0, data: '' }
  const found = { id: 'i', row: { ...row, state: 'rejected' as const }, record: record() }

  it('the step is the same for a forgotten record as for an absent one', () => {
    expect(decide('recover', { row: found.row }, here)).toEqual({ step: 'nothing' })
  })

  it('an unknown step ends the call', () => {
    const unheard = { step: 'guess' } as unknown as never
    expect(() => unknownStep(unheard)).toThrow('Nothing was sent: {"step":"guess"} is an unknown step.')
  })

  it('the step depends on the row that was found, which must have a record', () => {
    expect(known(found)).toEqual(found)
    const { row, record: content } = found
    for (const none of [undefined, { id: 'i' }, { id: 'i', row }, { id: 'i', record: content }])
      expect(() => known(none)).toThrow(new TypeError('unreachable: there is no record'))
  })
})
