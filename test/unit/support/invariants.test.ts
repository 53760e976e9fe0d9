import { describe, expect, it } from 'vitest'
import type { StoredRecord } from '../../harness/core.ts'
import { agreement, generations, oneCharge, stability, termination, truth } from '../../support/invariants.ts'
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

describe('an order that is handed out', () => {
  const handedOut = (asked: string | undefined, sold: string | undefined): string[] => {
    const log = logOf()
    const call = began(log, asked === undefined ? {} : { payload: asked })
    bought(log, call, sold)
    log.ended(call, 1, { told: { charged: 'yes', orderId: 'o' } })
    return truth(log)
  }

  it('a returned order is the one that was requested', () => {
    expect(handedOut(ONE, ONE)).toEqual([])
    expect(handedOut(TWO, ONE)).toEqual([expect.stringMatching(/^I5: a asked for 2 .* order o for 1/)])
  })

  const beside = (slot: string, process: number): string[] => {
    const log = logOf(slot)
    const first = began(log)
    const second = began(log, { process })
    bought(log, first)
    log.ended(first, 1, { told: { charged: 'yes', orderId: 'o' } })
    log.ended(second, 1, { told: { charged: 'yes', orderId: 'o' } })
    return truth(log)
  }

  it('an anonymous order is not that of a concurrent call in the same process', () => {
    expect(beside('anon:f', 1)).toHaveLength(2)
    expect(beside('anon:f', 1)[0]).toMatch(/^I5: a has no name and got the order o of call 1 beside it/)
    expect(beside('anon:f', 2)).toEqual([])
    expect(beside(REFERENCE, 1)).toEqual([])
  })
})

describe('what a recovery leaves to a person', () => {
  type Reason = 'aborted' | 'refused'
  const left = (reason: Reason, happened: (log: RunRecorder) => void): string[] => {
    const log = logOf('key:k')
    happened(log)
    const { externalOrderId: _none, ...unnamed } = RECORD
    stored(log, unnamed, { slot: 'key:k', hold: reason })
    const recovery = began(log, { kind: 'recover' })
    log.said(recovery, { intent: 'a', outcome: 'needs_attention', key: 'k', reason, wall: 0 })
    log.ended(recovery, 1, {})
    return agreement(log).filter((sentence) => sentence.includes('recovery'))
  }
  const unfounded = [expect.stringMatching(/^I6: recovery .* for which there was no such reason/)]

  it('an order that needs a person was aborted by its caller, not only recorded so', () => {
    const givesUp = (log: RunRecorder): void => {
      const call = began(log)
      call.abortedAt = log.next()
      log.ended(call, 1, { told: { charged: 'unknown', code: 'aborted' } })
    }
    expect(left('aborted', givesUp)).toEqual([])
    expect(left('aborted', () => {})).toEqual(unfounded)
  })

  it('an order that needs a person was refused in a response, not only recorded so', () => {
    const refused = (status: number, heard: boolean) => (log: RunRecorder) => {
      const call = began(log)
      log.answered(sent(log, call), status, undefined, heard)
      log.ended(call, 1, { told: { charged: 'unknown', code: 'unresolved' } })
    }
    expect(left('refused', refused(402, true))).toEqual([])
    expect(left('refused', refused(402, false))).toEqual(unfounded)
    expect(left('refused', refused(500, true))).toEqual(unfounded)
  })
})

it('an order is in progress if its record is open, or a call of the same process runs', () => {
  const told = (process: number, state: 'open' | 'rejected'): string[] => {
    const log = logOf()
    const recovery = began(log, { kind: 'recover', process: 2 })
    began(log, { process })
    stored(log, RECORD, { state })
    log.said(recovery, { intent: 'a', outcome: 'in_progress', key: 'k', wall: 1 })
    return agreement(log)
  }
  expect(told(1, 'open')).toEqual([])
  expect(told(2, 'rejected')).toEqual([])
  expect(told(1, 'rejected')).toEqual([expect.stringContaining('whose record was settled')])
})

describe('a call that overslept its deadline', () => {
  const CREATED = { state: 'created', readable: true, order: { id: 'o' } } as const
  const REFUSED = { state: 'rejected', rejection: { kind: 'refused', status: 402 } } as const

  /** A call that reports this about a record which an earlier call has settled. */
  const reporting = (
    told: Told,
    { overslept, record = CREATED }: { overslept: boolean; record?: Partial<StoredRecord> },
  ): string[] => {
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
  const TIMEOUT = { charged: 'unknown', code: 'timeout' } as const

  it("a call whose process slept through its time for a last read may report 'unknown'", () => {
    expect(reporting(TIMEOUT, { overslept: true })).toEqual([])
    expect(reporting(TIMEOUT, { overslept: true, record: REFUSED })).toEqual([])
  })

  it("a call whose process was awake must not report 'unknown' about a settled record", () => {
    expect(reporting(TIMEOUT, { overslept: false })).toEqual([
      "I6: a was told 'unknown' (timeout) while the record says 'yes'",
    ])
    expect(reporting(TIMEOUT, { overslept: false, record: REFUSED })).toEqual([
      "I6: a was told 'unknown' (timeout) while the record says 'no'",
    ])
  })

  it('a call that overslept must report nothing but a timeout that contradicts the record', () => {
    for (const told of [
      { charged: 'no', code: 'timeout' },
      { charged: 'unknown', code: 'connection' },
    ] as const)
      expect(reporting(told, { overslept: true })).toHaveLength(1)
    const yes = reporting({ charged: 'yes', orderId: 'o' }, { overslept: true, record: REFUSED })
    expect(yes[0]).toBe("I6: a was told 'yes' (an order) and the record has no order")
  })
})

describe('results of resolve()', () => {
  const taken = (
    facts: Partial<LoggedCall>,
    record: Partial<StoredRecord> | undefined,
    /** The source system of the charged order `o`. */
    buyer?: string,
  ): string[] => {
    const log = logOf()
    if (buyer !== undefined) log.charge({ intent: buyer, key: 'k', orderId: 'o', requestedAt: 0 })
    const call = began(log, facts)
    if (record !== undefined) stored(log, RECORD, record)
    log.ended(call, 1, { succeeded: true })
    return agreement(log)
  }

  const decided = { kind: 'resolve', decision: { orderId: 'o' } } as const
  const created = { state: 'created', readable: true, order: { id: 'o' } } as const

  it('a decision is stored when resolve() returns', () => {
    expect(taken(decided, created, 'a')).toEqual([])
    expect(taken(decided, { state: 'open' }, 'a')).toEqual([
      'I6: resolve() took a for o and no record says so',
    ])
  })

  it("an order that a person names is not another integration's", () => {
    expect(taken(decided, created, 'b')).toEqual(['I5: resolve() took a for o, which is another order'])
  })

  it('a person can confirm the own order, unless another call settles it first', () => {
    const refused = (record: Partial<StoredRecord>): string[] => {
      const log = logOf()
      const call = began(log, { kind: 'resolve', decision: { orderId: 'o', isOwn: true } })
      stored(log, RECORD, record)
      log.ended(call, 1, { told: { charged: 'unknown', code: 'invalid_request' } })
      return agreement(log)
    }
    expect(refused(created)).toEqual([])
    expect(refused({})).toEqual(['I2: a person could not say that o is the order of a'])
  })

  it('an order that a person settles is not reported as uncharged if it is charged', () => {
    const told = (charged: 'no' | 'unknown'): string[] => {
      const log = logOf()
      bought(log, began(log))
      const call = began(log, { kind: 'resolve' })
      log.ended(call, 1, { told: { charged, code: 'store' } })
      return truth(log)
    }
    expect(told('unknown')).toEqual([])
    expect(told('no')).toEqual([expect.stringMatching(/^I5: a was told 'no' \(store\) after it was charged/)])
  })
})

describe('a key that is sent again', () => {
  const leaving = (wall: number, facts: Partial<LoggedCall> = {}, firstSentAt = 1): string[] => {
    const log = logOf()
    stored(log, RECORD, { firstSentAt })
    const call = began(log, { sendsFor: 1000, ...facts })
    log.request({ intent: 'a', key: 'k', body: '{}', call: call.id, wall })
    return oneCharge(log)
  }

  it("a key is sent again only within the safe-retry window, by its process's clock", () => {
    expect(leaving(1001)).toEqual([])
    expect(leaving(1002)).toEqual(['I1: a was sent with key k 1001 ms after its first send'])
  })
})

describe('the body of a key', () => {
  /** A call overtaken by another sends the second body once more after the record was written. */
  const changed = (hold: Partial<StoredRecord>, claimed: Partial<StoredRecord> = {}): string[] => {
    const log = logOf()
    const requested = (body: string): void =>
      void log.request({ intent: 'a', key: 'k', body, call: began(log).id })
    stored(log, RECORD, { body: 'two' })
    requested('two')
    stored(log, RECORD, { body: 'two', ...hold })
    requested('two')
    stored(log, RECORD, { body: 'one', ...claimed })
    requested('one')
    return stability(log)
  }
  const broken = ['I4: key k was sent with two bodies']

  it('a key may be sent with another body that a call has claimed over a conflict', () => {
    expect(changed({ hold: 'conflict' })).toEqual([])
    expect(changed({})).toEqual(broken)
    expect(changed({ hold: 'refused' })).toEqual(broken)
    expect(changed({ hold: 'conflict' }, { body: 'two' })).toEqual(broken)
  })
})

describe('the time of a recovery', () => {
  const taking = (milliseconds: number, records: number): string[] => {
    const log = logOf()
    const call = began(log, { kind: 'recover' })
    for (let index = 0; index < records; index++)
      log.said(call, { intent: 'a', outcome: 'in_progress', key: 'k', wall: 0 })
    log.ended(call, milliseconds, {})
    return termination(log)
  }

  it('the time of a recovery is that of its records, each its own', () => {
    expect(taking(31_000, 0)).toEqual([])
    expect(taking(31_001, 0)).toEqual([expect.stringMatching(/^I9: recover .* took 31001 ms/)])
    expect(taking(62_000, 1)).toEqual([])
    expect(taking(62_001, 1)).toHaveLength(1)
  })
})

describe('the next key of an order', () => {
  /**
   * An order whose second key is sent without a refusal of the first, after a person abandoned one
   * generation.
   */
  const givenUp = (generation: number): string[] => {
    const log = logOf()
    stored(log, RECORD)
    sent(log, began(log))
    const rejection = { kind: 'abandoned' } as const
    stored(log, RECORD, { key: `k${generation}`, generation, state: 'rejected', rejection })
    stored(log, RECORD, { key: 'k1', generation: 1 })
    stored(log, RECORD, { key: 'k2', generation: 2 })
    log.request({ intent: 'a', key: 'k2', body: '{}', call: began(log).id })
    return generations(log)
  }

  it('the next key may be sent only if a person abandoned the previous one', () => {
    expect(givenUp(2)).toEqual([])
    expect(givenUp(1)).toEqual([expect.stringMatching(/^I7: .* not refused twice/)])
  })

  it.each([
    ['a clock that was ahead wrote the record before', { updatedAt: 3_600_000 }, true],
    ['a clock that went back wrote the record before', { firstSentAt: 40_000, updatedAt: 50 }, true],
    ['the key before is marked as one of an unknown time', { firstSentAt: 0 }, true],
    ['the key before was sent just now', { updatedAt: 50 }, false],
  ])('the next key may or may not be sent without a second refusal if %s', (_what, facts, allowed) => {
    const log = logOf()
    const refused = log.request({ intent: 'a', key: 'k', body: '{}', call: began(log).id, wall: 0 })
    log.answered(refused, 402, undefined, true)
    stored(log, RECORD, { state: 'rejected', rejection: { kind: 'refused', status: 402 }, ...facts })
    stored(log, RECORD, { key: 'k1', generation: 1 })
    const { id } = began(log, { wall: 100, sendsFor: 300_000 })
    log.request({ intent: 'a', key: 'k1', body: '{}', call: id, wall: 100 })
    expect(generations(log)).toEqual(allowed ? [] : [expect.stringMatching(/^I7: .* not refused twice/)])
  })
})
