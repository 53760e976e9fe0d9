import { expect, it } from 'vitest'
import { classify, OUTCOMES } from '../../../src/orders/protocol/outcome.ts'
import { MEANING } from '../../support/meaning.ts'
import { DEFINITE, REFUSALS_ALONE, REFUSALS_WITH_BODY } from '../../support/statuses.ts'

const ERRORS = Array.from({ length: 200 }, (_, index) => 400 + index)

/** The statuses of errors with this body that the outcome table takes for a refusal. */
const refusalsIn = (text: string): readonly number[] =>
  ERRORS.filter((status) => {
    const { kind } = classify(
      { kind: 'answer', status, headers: new Headers(), text },
      { slot: '', fingerprint: {} },
    )
    return MEANING[OUTCOMES[kind].shows].charged === 'no'
  })

const sorted = (statuses: Iterable<number>): readonly number[] => [...statuses].sort((a, b) => a - b)

it.each([
  ['an error body', '{"code":"NO","message":"no"}', [...REFUSALS_WITH_BODY, ...REFUSALS_ALONE]],
  ['a page', '<html>no</html>', REFUSALS_ALONE],
  ['the code of a conflict', '{"code":"IDEMPOTENCY_CONFLICT"}', []],
  ['the code of a request in progress', '{"code":"IDEMPOTENCY_IN_PROGRESS"}', []],
] as const)('the harnesses and the outcome table agree on the refusals with %s', (_body, text, statuses) => {
  expect(refusalsIn(text)).toEqual(sorted(statuses))
})

it('a request bought nothing after every refusal, and after a conflict', () => {
  expect(sorted(DEFINITE)).toEqual(sorted([...refusalsIn('{"code":"NO"}'), 409]))
})
