import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatAmount } from '../../src/money.ts'
import { effort } from '../support/effort.ts'

const decimalsByCode: Readonly<Record<string, number>> = { JPY: 0, EUR: 2, HUF: 2, QQQ: 2, KWD: 3, UYW: 4 }
const currency = fc.constantFrom(...Object.keys(decimalsByCode))
const amount = fc.oneof(
  fc.maxSafeInteger(),
  fc.integer({ min: -1_000_000, max: 1_000_000 }),
  fc.integer({ min: -99, max: 99 }),
)
const locale = fc.constantFrom(
  ...['en', 'de', 'de-CH', 'fr', 'es', 'pl', 'hi-IN', 'bn', 'ar-EG', 'fa', 'he', 'my', 'ne'],
  ...['ja', 'sv', 'pt-PT', 'lt'],
  ...['en-u-nu-adlm', 'ff-Adlm', 'zh-u-nu-hanidec', 'en-u-nu-fullwide'],
)

/** The amount as decimal text, computed with integers. */
function decimalText(minor: number, decimals: number): string {
  const unit = 10n ** BigInt(decimals)
  const size = minor < 0 ? -BigInt(minor) : BigInt(minor)
  const fraction = decimals === 0 ? '' : `.${(size % unit).toString().padStart(decimals, '0')}`
  return `${minor < 0 ? '-' : ''}${size / unit}${fraction}`
}

test("the text equals Intl's output for the exact decimal, in every locale", () => {
  fc.assert(
    fc.property(amount, currency, locale, (minor, code, tag) => {
      const decimals = decimalsByCode[code] ?? 2
      const format = new Intl.NumberFormat(tag, {
        style: 'currency',
        currency: code,
        minimumFractionDigits: decimals,
        maximumFractionDigits: decimals,
      })
      expect(formatAmount({ amount: minor, currency: code }, tag)).toBe(
        format.format(decimalText(minor, decimals) as `${number}`),
      )
    }),
    { numRuns: effort(100, 1000) },
  )
})
