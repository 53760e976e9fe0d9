import { describe, expect, test } from 'vitest'
import { checkQuantity, type QuantityRules } from '../../src/quantity.ts'

const ok = { ok: true }

function rules(minQuantity: number, maxQuantity: number, stepQuantity: number): QuantityRules {
  return { minQuantity, maxQuantity, stepQuantity }
}

/** Rules as a service might send them in violation of its own schema. */
const oddRules = (fields: object) => fields as QuantityRules

test.each<[string, QuantityRules, number]>([
  ['at the minimum', rules(100, 1000, 50), 100],
  ['at the maximum', rules(100, 1000, 50), 1000],
  ['on the step', rules(100, 1000, 50), 550],
  ['on the step counted from the minimum only', rules(10, 100, 25), 35],
  ['on the step counted from zero only', rules(10, 100, 25), 50],
  ['on a step of tenths', rules(0.1, 10, 0.1), 7],
  ['on a step of thirds of a decimal, where floating-point remainders fail', rules(0, 10, 0.3), 3],
  ['on a step of hundredths counted from a fraction', rules(0.75, 10, 0.25), 2],
  ['on a step in exponent notation', rules(1, 1e21, 1e-7), 5],
  ['on a step larger than the quantity, at the minimum', rules(5, 1000, 100), 5],
  ['between fractional bounds', rules(0.5, 2.5, 0.5), 2],
  ['as large as an integer can safely be', rules(1, Number.MAX_VALUE, 1), Number.MAX_SAFE_INTEGER],
  ['of one where the minimum is zero or less', rules(-5, 10, 1), 1],
])('the quantity %s passes', (_what, service, quantity) => {
  expect(checkQuantity(service, quantity)).toEqual(ok)
})

test('checkQuantity accepts a complete service', () => {
  const service = { productId: 'p', amount: 1, currency: 'EUR', ...rules(1, 10, 1), stock: 'low' }
  expect(checkQuantity(Object.freeze(service), 10)).toEqual(ok)
})

describe('a quantity outside the rules is refused with reason, message and the nearest that pass', () => {
  const TOO_LARGE = 'Quantity 9007199254740992 is above the maximum of 9007199254740991.'
  const offStep = (quantity: number, step: number, minimum?: number): string =>
    `Quantity ${quantity} does not fit the step of ${step}, counted from zero${minimum === undefined ? '' : ` or from the minimum of ${minimum}`}.`

  test.each<[QuantityRules, number, string, string, number[]]>([
    [rules(100, 1000, 50), 99, 'below_minimum', 'Quantity 99 is below the minimum of 100.', [100]],
    [rules(100, 1000, 50), -1, 'below_minimum', 'Quantity -1 is below the minimum of 100.', [100]],
    [rules(100, 1000, 50), 1001, 'above_maximum', 'Quantity 1001 is above the maximum of 1000.', [1000]],
    [rules(0, 10, 1), 0, 'below_minimum', 'Quantity 0 is below the minimum of 1.', [1]],
    [rules(0, 10, 5), 0, 'below_minimum', 'Quantity 0 is below the minimum of 1.', [5]],
    [rules(-5, 10, 4), -0, 'below_minimum', 'Quantity 0 is below the minimum of 1.', [3]],
    [rules(100, 1000, 50), 120, 'off_step', offStep(120, 50, 100), [100, 150]],
    [rules(0, 100, 30), 95, 'off_step', offStep(95, 30), [90]],
    [rules(10, 100, 25), 20, 'off_step', offStep(20, 25, 10), [10, 25]],
    [rules(0.5, 100, 1.5), 4, 'off_step', offStep(4, 1.5, 0.5), [3, 5]],
    [rules(1, 10, 0.7), 2, 'off_step', offStep(2, 0.7, 1), [1, 7]],
    [rules(100, 1000, 50), 120.5, 'not_an_integer', 'Quantity 120.5 is not an integer.', [100, 150]],
    [rules(1, 10, 0.5), 2.5, 'not_an_integer', 'Quantity 2.5 is not an integer.', [2, 3]],
    [rules(1, 10, 1), 0.5, 'not_an_integer', 'Quantity 0.5 is not an integer.', [1]],
    [rules(1, 10, 1), 10.5, 'not_an_integer', 'Quantity 10.5 is not an integer.', [10]],
    [rules(1, 10, 1), Number.NaN, 'not_a_number', 'Quantity is not a finite number.', []],
    [rules(1, 10, 1), Number.POSITIVE_INFINITY, 'not_a_number', 'Quantity is not a finite number.', []],
    [rules(1, 1000, 7), 1e300, 'above_maximum', 'Quantity 1e+300 is above the maximum of 1000.', [995]],
    [rules(1, 1e300, 10), 2 ** 53, 'above_maximum', TOO_LARGE, [9007199254740991]],
    [rules(1.2, 3.8, 1), 1, 'below_minimum', 'Quantity 1 is below the minimum of 1.2.', [2]],
    [rules(1.2, 3.8, 1), 4, 'above_maximum', 'Quantity 4 is above the maximum of 3.8.', [3]],
  ])('%o and %d: %s', (service, quantity, reason, message, nearest) => {
    expect(checkQuantity(service, quantity)).toEqual({ ok: false, reason, message, nearest })
  })

  test.each(['5', 5n, null, undefined, {}, new Date()])('%o is not a number', (quantity) => {
    const refusal = { reason: 'not_a_number', nearest: [] }
    expect(checkQuantity(rules(1, 10, 1), quantity as number)).toMatchObject(refusal)
  })
})

test.each<[string, QuantityRules, string]>([
  ['a minimum above the maximum', rules(10, 5, 1), 'minimum 10, maximum 5, step 1'],
  ['a maximum below one', rules(0, 0, 1), 'minimum 0, maximum 0, step 1'],
  ['no integer between its bounds', rules(1.2, 1.8, 0.1), 'minimum 1.2, maximum 1.8, step 0.1'],
  ['no integer on its step', rules(0.5, 30, 100), 'minimum 0.5, maximum 30, step 100'],
  ['a minimum beyond the safe integers', oddRules({ minQuantity: 1e20 }), 'minimum 100000000000000000000'],
])('a service without any valid quantity is reported: %s', (_what, service, listed) => {
  for (const quantity of [7, 7.5]) {
    expect(checkQuantity(service, quantity)).toEqual({
      ok: false,
      reason: 'no_valid_quantity',
      message: `The service's rules allow no quantity (${listed}).`,
      nearest: [],
    })
  }
})

describe('rules that mean nothing are left to the service', () => {
  const infinities = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  const meaningless = [undefined, null, '5', Number.NaN, ...infinities, {}, 5n, true]

  test.each(meaningless)('a limit or step of %o is ignored', (value) => {
    expect(checkQuantity(oddRules({ minQuantity: value, maxQuantity: 10, stepQuantity: 1 }), 1)).toEqual(ok)
    expect(checkQuantity(oddRules({ minQuantity: 1, maxQuantity: value, stepQuantity: 1 }), 1e9)).toEqual(ok)
    expect(checkQuantity(oddRules({ minQuantity: 1, maxQuantity: 10, stepQuantity: value }), 7)).toEqual(ok)
  })

  test.each([[0], [-0], [-5]])('a step of %d is ignored', (step) => {
    expect(checkQuantity(rules(1, 10, step), 7)).toEqual(ok)
  })

  test('a step without a known minimum is ignored, because steps may be counted from the minimum', () => {
    expect(checkQuantity(oddRules({ minQuantity: '3', maxQuantity: 10, stepQuantity: 5 }), 8)).toEqual(ok)
  })

  test('a service without rules accepts every positive safe integer', () => {
    expect(checkQuantity(oddRules({}), 1)).toEqual(ok)
    expect(checkQuantity(oddRules({}), Number.MAX_SAFE_INTEGER)).toEqual(ok)
    expect(checkQuantity(oddRules({}), 0)).toMatchObject({ reason: 'below_minimum', nearest: [1] })
  })

  test('extreme numbers are checked immediately', () => {
    const tiny = rules(Number.MIN_VALUE, Number.MAX_VALUE, Number.MIN_VALUE)
    expect(checkQuantity(tiny, 3)).toEqual(ok)
    expect(checkQuantity(rules(1, Number.MAX_VALUE, Number.MAX_VALUE), 3)).toMatchObject({ nearest: [1] })
  })
})
