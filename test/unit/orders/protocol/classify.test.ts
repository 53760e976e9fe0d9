import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { AttemptResult, BodyProblem } from '../../../../src/http/attempt.ts'
import type { Unsent } from '../../../../src/http/transport.ts'
import {
  type Asked,
  classify as classifyAgainst,
  OUTCOMES,
  type Outcome,
  type OutcomeKind,
} from '../../../../src/orders/protocol/outcome.ts'
import { effort } from '../../../support/effort.ts'
import { MEANING } from '../../../support/meaning.ts'
import { REFUSED } from '../../../support/statuses.ts'

const order = { id: 'ord_1', status: 'pending', amount: 250 }

function answer(status: number, body: unknown, problem?: BodyProblem): AttemptResult {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return { kind: 'answer', status, headers: new Headers(), text, ...(problem && { problem }) }
}

function failed(unsent: false | Unsent, closed = false): AttemptResult {
  return { kind: 'failed', unsent, closed, detail: { name: 'Error' } }
}

const ASKED: Asked = { slot: 'ref:r1', externalOrderId: 'r1', fingerprint: {} }
const OTHER = { externalOrderId: 'r2' }

const classify = (result: AttemptResult): Outcome => classifyAgainst(result, ASKED)

const refusal = { code: 'NOPE', message: 'no' }
const login = '<!doctype html><title>Please log in</title>'

const bothCodes = { code: 'IDEMPOTENCY_CONFLICT', was: 'IDEMPOTENCY_IN_PROGRESS' }

type Case = readonly [OutcomeKind, string, AttemptResult]

/** A case for each of these statuses. */
const each = (statuses: readonly number[], kind: OutcomeKind, what: string, body: unknown): Case[] =>
  statuses.map((status) => [kind, `${status} ${what}`, answer(status, body)])

const CASES: readonly Case[] = [
  ['created', '201 with an order', answer(201, order)],
  ['created', '200 with an order, as a replay may be', answer(200, order)],
  ['created', '202 with an order', answer(202, order)],
  ['created', '201 with an order and unknown fields', answer(201, { ...order, anything: [1] })],
  ['created', '201 with a negative amount: odd, but an integer', answer(201, { ...order, amount: -1 })],
  ['created_flawed', '201 with an unsafe amount', answer(201, { ...order, amount: 2 ** 53 })],
  ['created_flawed', '201 with a fractional amount', answer(201, { ...order, amount: 2.5 })],
  ['created_flawed', '201 without a status', answer(201, { id: 'ord_1', amount: 1 })],
  ['created_flawed', '201 with nothing but an id', answer(201, { id: 'ord_1' })],
  ['created_unreadable', '201 with half a body', answer(201, '{"id":"ord_1","sta')],
  ['created_unreadable', '201 without a body', answer(201, '')],
  ['created_unreadable', '201 with a page', answer(201, login)],
  ['created_unreadable', '201 with a number as id', answer(201, { ...order, id: 7 })],
  ['created_unreadable', '201 with an empty id', answer(201, { ...order, id: '' })],
  ['created_unreadable', '201 with a blank id, which no path can hold', answer(201, { ...order, id: ' ' })],
  ['created_unreadable', '201 with null', answer(201, null)],
  ['created_unreadable', '201 with a number', answer(201, 7)],
  ['created_unreadable', '201 with a string', answer(201, '"ord_1"')],
  ['created_unreadable', '201 with an array', answer(201, [order])],
  ['created_unreadable', '201 cut short', answer(201, '{"id"', 'cut')],
  ['created_unreadable', '201 that stalled', answer(201, '{"id"', 'timeout')],
  ['created_unreadable', '201 larger than is read', answer(201, ' ', 'too_large')],
  ['created_unreadable', '201 given up by the caller', answer(201, '', 'aborted')],
  ['created_unreadable', '201 that looks whole but was cut', answer(201, order, 'cut')],
  ['success_unreadable', '200 with a page', answer(200, login)],
  ['success_unreadable', '200 with an order lacking its amount', answer(200, { id: 'ord_1', status: 's' })],
  ['success_unreadable', '204', answer(204, '')],
  ['success_unreadable', '200 cut short', answer(200, '', 'cut')],
  ['unrecognised', '199 with an order', answer(199, order)],
  ['unrecognised', '300 with an order', answer(300, order)],
  ['redirected', '303', { kind: 'redirect', status: 303, headers: new Headers() }],
  ['redirected', 'an opaque redirect', { kind: 'redirect', status: 0, headers: new Headers() }],
  ...each([...REFUSED], 'refused', 'with an error body', refusal),
  ...each([405, 406, 411, 413, 414, 415, 431], 'refused_unprocessed', 'with an error body', refusal),
  ...each([400, 402, 403, 404, 405, 413, 422], 'unrecognised', 'with a page', login),
  ['unrecognised', '402 with an empty object', answer(402, {})],
  ['unrecognised', '402 cut short', answer(402, '{"code":"PAY', 'cut')],
  ['unrecognised', '418', answer(418, refusal)],
  ['unrecognised', '421', answer(421, refusal)],
  ['unauthorized', '401', answer(401, refusal)],
  ['unauthorized', '401 with a page', answer(401, login)],
  ['forbidden', '403 with an error body', answer(403, refusal)],
  ['too_early', '425', answer(425, '')],
  ['rate_limited', '429', answer(429, login)],
  ['request_timeout', '408', answer(408, refusal)],
  ['conflict', '409 with the documented code', answer(409, { code: 'IDEMPOTENCY_CONFLICT', message: 'm' })],
  ['conflict', '409 with the code nested', answer(409, { error: { code: 'IDEMPOTENCY_CONFLICT' } })],
  ['in_progress', '409 in progress', answer(409, { errors: [{ code: 'IDEMPOTENCY_IN_PROGRESS' }] })],
  ['conflict_unknown', '409 with another code', answer(409, refusal)],
  ['conflict_unknown', '409 with a page', answer(409, login)],
  ['conflict_unknown', '409 with both codes', answer(409, bothCodes)],
  ['conflict_unknown', '409 cut short', answer(409, '{"code":"IDEMPOTENCY_CON', 'cut')],
  ...each([500, 501, 502, 503, 504, 520, 599], 'server_error', 'with an error body', refusal),
  ['unreachable', 'no connection', failed('unreachable')],
  ['untrusted', 'a rejected certificate', failed('certificate')],
  ['transport_closed', 'a transport that its owner closed', failed('transport_closed')],
  ['not_sent', 'a connection that came too late', failed('late')],
  ['connection_closed', 'a reset', failed(false, true)],
  ['connection_lost', 'any other failure', failed(false)],
  ['timed_out', 'no answer in time', { kind: 'timeout' }],
  ['aborted', 'the caller gave up', { kind: 'aborted' }],
]

describe('the kind of an ending', () => {
  it.each(CASES)('the outcome is %s for %s', (kind, _what, result) => {
    expect(classify(result).kind).toBe(kind)
  })

  it('the table covers every kind except the one that depends on the request', () => {
    const covered = new Set(CASES.map(([kind]) => kind))
    expect(Object.keys(OUTCOMES).filter((kind) => !covered.has(kind as OutcomeKind))).toEqual([
      'contradicted',
    ])
  })

  const more = { ...order, unknownToUs: { deep: true } }
  const issues = [{ path: 'externalOrderId', message: 'is not what was sent' }]
  const noJson = [{ path: '', message: 'is not JSON' }]
  const bought = { ...refusal, code: 'PAYMENT_REQUIRED' }
  it.each<[what: string, text: object | string, outcome: Outcome & { status: number }]>([
    ['the order with unknown fields', more, { kind: 'created', status: 201, order: more, orderId: 'ord_1' }],
    ['that the response is not JSON', login, { kind: 'created_unreadable', status: 201, issues: noJson }],
    ["a refusal's code, not its text", bought, { kind: 'refused', status: 402, code: 'PAYMENT_REQUIRED' }],
    // No id of another order is reported.
    ['a contradiction', { ...order, ...OTHER }, { kind: 'contradicted', status: 201, issues }],
    ['a contradiction of a replay', { ...order, ...OTHER }, { kind: 'contradicted', status: 200, issues }],
    ['a contradiction of an id', { id: 'ord_1', ...OTHER }, { kind: 'contradicted', status: 201, issues }],
  ])('the outcome has %s, and nothing else', (_what, body, outcome) => {
    expect(classify(answer(outcome.status, body))).toEqual(outcome)
  })

  it('neither a truncated body nor a refusal is compared with the request', () => {
    expect(classify(answer(201, { ...order, ...OTHER }, 'cut')).kind).toBe('created_unreadable')
    expect(classify(answer(402, { ...refusal, ...OTHER })).kind).toBe('refused')
  })

  it('the outcome has the id and the invalid field of a created order', () => {
    const { orderId, issues, order: none } = classify(answer(201, { id: 'ord_1', status: 7, amount: 'x' }))
    expect(orderId).toBe('ord_1')
    expect(none).toBeUndefined()
    expect(issues?.map(({ path }) => path)).toEqual(['status', 'amount'])
  })

  it('an id is only taken from a 201', () => {
    expect(classify(answer(200, { id: 'ord_1' })).orderId).toBeUndefined()
  })
})

const bodies = fc.oneof(
  fc.json(),
  fc.string(),
  fc.constantFrom(login, '', JSON.stringify(order), JSON.stringify(refusal)),
)
const PROBLEMS = ['cut', 'timeout', 'aborted', 'too_large'] as const
const problems = fc.option(fc.constantFrom<BodyProblem>(...PROBLEMS), { nil: undefined })
const UNSENT = [false, 'unreachable', 'certificate', 'transport_closed', 'late'] as const
const results = fc.oneof(
  fc
    .tuple(fc.integer({ min: 100, max: 599 }), bodies, problems)
    .map(([status, body, problem]) => answer(status, body, problem)),
  fc
    .tuple(fc.constantFrom<false | Unsent>(...UNSENT), fc.boolean())
    .map(([unsent, closed]) => failed(unsent, closed)),
  fc.constantFrom<AttemptResult>({ kind: 'timeout' }, { kind: 'aborted' }),
)

describe('any ending at all', () => {
  const forAny = (check: (result: AttemptResult, outcome: Outcome) => void): void =>
    fc.assert(
      fc.property(results, (result) => check(result, classify(result))),
      { numRuns: effort(500, 5000) },
    )

  it('only a 201, or a complete and readable order, proves a charge', () => {
    forAny((result, { kind, order: readable }) => {
      if (OUTCOMES[kind].shows !== 'charge') return
      const status = result.kind === 'answer' ? result.status : 0
      expect(status === 201 || (status > 199 && status < 300 && readable !== undefined)).toBe(true)
    })
  })

  it("charged is no only after a response in the service's own form, throttling, or no send", () => {
    forAny((result, { kind }) => {
      if (MEANING[OUTCOMES[kind].shows].charged !== 'no') return
      if (result.kind === 'failed') expect(result.unsent).not.toBe(false)
      else if (result.kind === 'answer' && ![401, 425, 429].includes(result.status))
        expect(JSON.parse(result.text)).toMatchObject({})
      else expect(result.kind).toBe('answer')
    })
  })

  it('JSON nested 100,000 deep does not change the outcome', () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
    expect(classify(answer(201, deep)).kind).toBe('created_unreadable')
    expect(classify(answer(402, deep)).kind).toBe('unrecognised')
    expect(classify(answer(409, `{"code":"X","a":${deep}}`)).kind).toBe('conflict_unknown')
    const created = classify(answer(201, `{"id":"ord_1","status":"s","amount":1,"deep":${deep}}`))
    expect([created.kind, created.orderId]).toEqual(['created', 'ord_1'])
  })
})
