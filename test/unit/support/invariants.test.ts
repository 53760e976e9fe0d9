import { expect, it } from 'vitest'
import type { StoredRecord } from '../../harness/core.ts'
import {
  agreement,
  amplification,
  generations,
  oneCharge,
  stability,
  termination,
  truth,
} from '../../support/invariants.ts'
import { type LoggedCall, type LoggedRequest, RunRecorder, type Told } from '../../support/run-log.ts'

const REFERENCE = 'ref:a'
const ONE = '1 of s for a'
const TWO = '2 of s for a'

/** A log of one order. */
function logOf(slot: string = REFERENCE): RunRecorder {
  const log = new RunRecorder()
  log.everyAbort = true
  log.intent('a', [slot])
  return log
}

function began(log: RunRecorder, facts: Partial<LoggedCall> = {}): LoggedCall {
  const usual = { kind: 'create', time: 0, totalTimeout: 1000, maxRetries: 0, process: 1 } as const
  return log.call({ ...usual, ...(facts.kind === 'recover' ? {} : { intent: 'a' }), ...facts })
}

function sent(log: RunRecorder, call: LoggedCall, payload?: string): LoggedRequest {
  const given = payload === undefined ? {} : { payload }
  return log.request({ intent: 'a', key: 'k', body: '{}', call: call.id, ...given })
}

/** A request of a call that buys the order `o`. */
function bought(log: RunRecorder, call: LoggedCall, payload?: string): void {
  const { at } = sent(log, call, payload)
  log.charge({ intent: 'a', key: 'k', orderId: 'o', requestedAt: at, call: call.id })
}

const NAMES = { slot: REFERENCE, key: 'k', externalOrderId: 'a' }
const TIMES = { firstSentAt: 1, createdAt: 1, updatedAt: 1 }
const RECORD: StoredRecord = {
  ...NAMES,
  ...TIMES,
  version: 1,
  keyOrigin: 'derived',
  generation: 0,
  state: 'open',
  ambiguous: true,
  body: '{}',
  apiKeyTag: 'tag',
  readable: false,
}

let versions = 0

function stored(log: RunRecorder, base: StoredRecord, changes: Partial<StoredRecord> = {}): void {
  const record = { ...base, ...changes }
  const open = record.state === 'open' || (record.state === 'created' && !record.readable)
  log.rows.push({ at: log.next(), id: 'row', version: ++versions, open, record })
}

/** A call reads the list so often, before and after another call writes the record. */
function looksUp(before: number, after: number): string[] {
  const log = logOf()
  const call = began(log)
  const read = () => log.read({ call: call.id, path: '/v1/orders' })
  for (let time = 0; time < before; time++) read()
  if (after > 0) stored(log, RECORD)
  for (let time = 0; time < after; time++) read()
  return amplification(log)
}

/** A call for `asked` gets an order for `sold`. */
function handedOut(asked: string, sold: string): string[] {
  const log = logOf()
  const call = began(log, { payload: asked })
  bought(log, call, sold)
  log.ended(call, 1, { told: { charged: 'yes', orderId: 'o' } })
  return truth(log)
}

/** Two concurrent calls get the same order, the second in this process. */
function beside(slot: string, process: number): string[] {
  const log = logOf(slot)
  const first = began(log)
  const second = began(log, { process })
  bought(log, first)
  for (const call of [first, second]) log.ended(call, 1, { told: { charged: 'yes', orderId: 'o' } })
  return truth(log)
}

/** A recovery leaves an order to a person for this reason. */
function left(reason: 'aborted' | 'refused', happened: (log: RunRecorder) => void): string[] {
  const log = logOf('key:k')
  happened(log)
  const { externalOrderId: _none, ...unnamed } = RECORD
  stored(log, unnamed, { slot: 'key:k', hold: reason })
  const recovery = began(log, { kind: 'recover' })
  log.said(recovery, { intent: 'a', outcome: 'needs_attention', key: 'k', reason, wall: 0 })
  log.ended(recovery, 1, {})
  return agreement(log).filter((sentence) => sentence.includes('recovery'))
}
const aborted = (log: RunRecorder): void => {
  const call = began(log)
  call.abortedAt = log.next()
  log.ended(call, 1, { told: { charged: 'unknown', code: 'aborted' } })
}
const refused = (status: number, heard: boolean) => (log: RunRecorder) => {
  const call = began(log)
  log.answered(sent(log, call), status, undefined, heard)
  log.ended(call, 1, { told: { charged: 'unknown', code: 'unresolved' } })
}

/** A recovery finds an order in progress, while a call runs in this process. */
function inProgress(process: number, state: 'open' | 'rejected'): string[] {
  const log = logOf()
  const recovery = began(log, { kind: 'recover', process: 2 })
  began(log, { process })
  stored(log, RECORD, { state })
  log.said(recovery, { intent: 'a', outcome: 'in_progress', key: 'k', wall: 1 })
  return agreement(log)
}

const CREATED = { state: 'created', readable: true, order: { id: 'o' } } as const
const REFUSED = { state: 'rejected', rejection: { kind: 'refused', status: 402 } } as const
const TIMEOUT = { charged: 'unknown', code: 'timeout' } as const

/** A call reports this about a record which an earlier call has settled. */
function reporting(told: Told, overslept: boolean, record: Partial<StoredRecord> = CREATED): string[] {
  const log = logOf()
  const first = began(log)
  bought(log, first)
  stored(log, RECORD, record)
  log.ended(first, 1, {})
  const call = began(log)
  if (overslept) call.overslept = true
  log.ended(call, 2, { told })
  return agreement(log)
}

/** resolve() takes the order `o`, which was charged for this intent. */
function taken(record: Partial<StoredRecord>, buyer: string): string[] {
  const log = logOf()
  log.charge({ intent: buyer, key: 'k', orderId: 'o', requestedAt: 0 })
  const call = began(log, { kind: 'resolve', decision: { orderId: 'o' } })
  stored(log, RECORD, record)
  log.ended(call, 1, { succeeded: true })
  return agreement(log)
}

/** A person cannot confirm the own order. */
function unconfirmed(record: Partial<StoredRecord>): string[] {
  const log = logOf()
  const call = began(log, { kind: 'resolve', decision: { orderId: 'o', isOwn: true } })
  stored(log, RECORD, record)
  log.ended(call, 1, { told: { charged: 'unknown', code: 'invalid_request' } })
  return agreement(log)
}

/** resolve() of a charged order fails, and reports this. */
function unresolved(charged: 'no' | 'unknown'): string[] {
  const log = logOf()
  bought(log, began(log))
  const call = began(log, { kind: 'resolve' })
  log.ended(call, 1, { told: { charged, code: 'store' } })
  return truth(log)
}

/** A key first sent at 1 is sent again at this time, with a window of a second. */
function sentAgain(wall: number): string[] {
  const log = logOf()
  stored(log, RECORD)
  const { id } = began(log, { sendsFor: 1000 })
  log.request({ intent: 'a', key: 'k', body: '{}', call: id, wall })
  return oneCharge(log)
}

/** A call sends another body after the record was written. */
function otherBody(hold: Partial<StoredRecord>): string[] {
  const log = logOf()
  const requested = (body: string): void =>
    void log.request({ intent: 'a', key: 'k', body, call: began(log).id })
  stored(log, RECORD, { body: 'two' })
  requested('two')
  stored(log, RECORD, { body: 'two', ...hold })
  stored(log, RECORD, { body: 'one' })
  requested('one')
  return stability(log)
}

/** A recovery of so many records takes this time. */
function lasting(milliseconds: number, records: number): string[] {
  const log = logOf()
  const call = began(log, { kind: 'recover' })
  for (let index = 0; index < records; index++)
    log.said(call, { intent: 'a', outcome: 'in_progress', key: 'k', wall: 0 })
  log.ended(call, milliseconds, {})
  return termination(log)
}

/** The third key is sent after a person abandoned this generation, and nothing was refused. */
function abandoned(generation: number): string[] {
  const log = logOf()
  stored(log, RECORD)
  sent(log, began(log))
  const rejection = { kind: 'abandoned' } as const
  stored(log, RECORD, { key: `k${generation}`, generation, state: 'rejected', rejection })
  for (const next of [1, 2]) stored(log, RECORD, { key: `k${next}`, generation: next })
  log.request({ intent: 'a', key: 'k2', body: '{}', call: began(log).id })
  return generations(log)
}

/** The second key is sent after one refusal of the first. */
function refusedOnce(facts: Partial<StoredRecord>): string[] {
  const log = logOf()
  const request = log.request({ intent: 'a', key: 'k', body: '{}', call: began(log).id, wall: 0 })
  log.answered(request, 402, undefined, true)
  stored(log, RECORD, { ...REFUSED, ...facts })
  stored(log, RECORD, { key: 'k1', generation: 1 })
  const { id } = began(log, { wall: 100, sendsFor: 300_000 })
  log.request({ intent: 'a', key: 'k1', body: '{}', call: id, wall: 100 })
  return generations(log)
}

const BESIDE = /^I5: a has no name and got the order o of call 1 beside it/
const UNFOUNDED = /^I6: recovery .* for which there was no such reason/
const LATE = /^I9: recover .* took \d+ ms/
const unknownOver = (stored: string) => RegExp(`^I6: a was told 'unknown' \\(timeout\\) .* '${stored}'$`)
const UNPROVEN = /^I6: a was told 'yes' \(an order\) and the record has no order$/
const TWO_BODIES = /^I4: key k was sent with two bodies$/
const NOT_REFUSED = /^I7: .* not refused twice/

it.each<[string, found: string[], broken?: RegExp]>([
  ['the order that was requested', handedOut(ONE, ONE)],
  ['another order than the requested one', handedOut(TWO, ONE), /^I5: a asked for 2 .* order o for 1/],
  ['a nameless order of a concurrent call in the same process', beside('anon:f', 1), BESIDE],
  ['a nameless order of a concurrent call in another process', beside('anon:f', 2)],
  ['an order with a reference of a concurrent call', beside(REFERENCE, 1)],

  ['an order for a person, aborted by its caller', left('aborted', aborted)],
  ['an order for a person, only recorded as aborted', left('aborted', () => {}), UNFOUNDED],
  ['an order for a person, refused in a response', left('refused', refused(402, true))],
  ['an order for a person, refused in a lost response', left('refused', refused(402, false)), UNFOUNDED],
  ['an order for a person, whose server failed', left('refused', refused(500, true)), UNFOUNDED],
  ['an open order in progress', inProgress(1, 'open')],
  ['a settled order in progress, whose call runs in the same process', inProgress(2, 'rejected')],
  ['a settled order in progress', inProgress(1, 'rejected'), /whose record was settled/],

  ["'unknown' after a sleep, over a created record", reporting(TIMEOUT, true)],
  ["'unknown' after a sleep, over a refused record", reporting(TIMEOUT, true, REFUSED)],
  ["'unknown' over a created record", reporting(TIMEOUT, false), unknownOver('yes')],
  ["'unknown' over a refused record", reporting(TIMEOUT, false, REFUSED), unknownOver('no')],
  ["'unknown' over a doubtful refusal", reporting(TIMEOUT, false, { ...REFUSED, maybeHidden: true })],
  ["'no' after a sleep", reporting({ charged: 'no', code: 'timeout' }, true), /^I6/],
  ["'unknown' after a sleep, no timeout", reporting({ ...TIMEOUT, code: 'connection' }, true), /^I6/],
  ["'yes' after a sleep, refused", reporting({ charged: 'yes', orderId: 'o' }, true, REFUSED), UNPROVEN],

  ['a decision that is stored', taken(CREATED, 'a')],
  ['a decision that is not stored', taken({}, 'a'), /^I6: .* took a for o and no record says so$/],
  ["a decision for another integration's order", taken(CREATED, 'b'), /^I5: .* o, which is another order$/],
  ['a person who cannot confirm an order that a call has settled', unconfirmed(CREATED)],
  ['a person who cannot confirm the own order', unconfirmed({}), /^I2: a person could not say that o is/],
  ["'unknown' about a charged order, told to a person", unresolved('unknown')],
  ["'no' about a charged order, told to a person", unresolved('no'), /^I5: a was told 'no' \(store\) after/],

  ['a key that is sent again within its window', sentAgain(1001)],
  ['a key that is sent again after its window', sentAgain(1002), /^I1: a was sent with key k 1001 ms after/],
  ['another body that a call has claimed over a conflict', otherBody({ hold: 'conflict' })],
  ['another body over an open record', otherBody({}), TWO_BODIES],
  ['another body over a refused record', otherBody({ hold: 'refused' }), TWO_BODIES],
  ['a look-up that reads the list twice', looksUp(2, 0)],
  ['a look-up that reads the list three times', looksUp(3, 0), /^I10: .* was read 3 times/],
  ['a look-up that begins again after another write', looksUp(2, 2)],
  ['a look-up that begins again twice after one write', looksUp(2, 3), /^I10: .* was read 5 times/],
  ['a recovery of no record that takes 31 s', lasting(31_000, 0)],
  ['a recovery of no record that takes longer', lasting(31_001, 0), LATE],
  ['a recovery of one record that takes 62 s', lasting(62_000, 1)],
  ['a recovery of one record that takes longer', lasting(62_001, 1), LATE],

  ['the next key after a person abandoned the previous one', abandoned(2)],
  ['the next key after a person abandoned an earlier one', abandoned(1), NOT_REFUSED],
  ['the next key after one refusal, under a clock that was ahead', refusedOnce({ updatedAt: 3_600_000 })],
  ['the next key after a refusal, the clock went back', refusedOnce({ firstSentAt: 40_000, updatedAt: 50 })],
  ['the next key after one refusal of a key of an unknown time', refusedOnce({ firstSentAt: 0 })],
  ['the next key after one refusal just now', refusedOnce({ updatedAt: 50 }), NOT_REFUSED],
])('the invariants judge %s', (_what, found, broken) => {
  if (broken === undefined) expect(found).toEqual([])
  else expect(found[0]).toMatch(broken)
  if (broken !== BESIDE) expect(found.length).toBeLessThanOrEqual(1)
})
