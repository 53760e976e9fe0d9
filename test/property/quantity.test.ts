import fc from 'fast-check'
import { expect, test } from 'vitest'
import { checkQuantity, type QuantityRules } from '../../src/quantity.ts'
import { effort } from '../support/effort.ts'

const HUNDREDTHS = 100

/** Decimal numbers with up to two places, with their value in whole hundredths. */
const hundredths = (min: number, max: number): fc.Arbitrary<number> => fc.integer({ min, max })
const drawn = fc.record({
  min: hundredths(-500, 6000),
  max: hundredths(-500, 12_000),
  step: hundredths(1, 3000),
})

function asRules({ min, max, step }: { min: number; max: number; step: number }): QuantityRules {
  return { minQuantity: min / HUNDREDTHS, maxQuantity: max / HUNDREDTHS, stepQuantity: step / HUNDREDTHS }
}

/** The rule by brute force in whole hundredths. */
function passes({ min, max, step }: { min: number; max: number; step: number }, quantity: number): boolean {
  const size = quantity * HUNDREDTHS
  const inBounds = quantity >= 1 && size >= min && size <= max
  return inBounds && (size % step === 0 || (size - min) % step === 0)
}

test('exactly the integers that brute force finds pass, and the suggested ones are the nearest', () => {
  fc.assert(
    fc.property(drawn, fc.integer({ min: -10, max: 130 }), fc.boolean(), (service, base, half) => {
      const quantity = half ? base + 0.5 : base
      const valid = Array.from({ length: 121 }, (_, candidate) => candidate).filter((each) =>
        passes(service, each),
      )
      const result = checkQuantity(asRules(service), quantity)
      expect(result.ok).toBe(valid.includes(quantity))
      if (result.ok) return
      const lower = valid.filter((each) => each < quantity).slice(-1)
      const higher = valid.filter((each) => each > quantity).slice(0, 1)
      expect(result.nearest).toEqual([...lower, ...higher])
      expect(result.reason === 'no_valid_quantity').toBe(valid.length === 0)
    }),
    { numRuns: effort(500, 5000) },
  )
})

test('the suggested quantities pass, whatever the rules', () => {
  const anyNumber = fc.oneof(
    fc.double(),
    fc.double({ min: 0, max: 1e6, noNaN: true }),
    fc.integer(),
    fc.constantFrom(0, 0.1, 1, 5e-324, Number.MAX_VALUE),
  )
  const anyRules = fc.record({ minQuantity: anyNumber, maxQuantity: anyNumber, stepQuantity: anyNumber })
  fc.assert(
    fc.property(anyRules, anyNumber, (service, quantity) => {
      const result = checkQuantity(service, quantity)
      const suggestions = result.ok ? [quantity] : result.nearest
      for (const each of suggestions) expect(checkQuantity(service, each)).toEqual({ ok: true })
      expect(suggestions).toEqual([...new Set(suggestions)].sort((a, b) => a - b))
      if (!result.ok && result.reason !== 'not_a_number' && result.reason !== 'no_valid_quantity') {
        expect(suggestions.length).toBeGreaterThan(0)
      }
    }),
    { numRuns: effort(200, 2000) },
  )
})
