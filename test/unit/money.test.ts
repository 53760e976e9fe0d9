import { describe, expect, test } from 'vitest'
import { formatAmount } from '../../src/money.ts'

/** Replaces every kind of space with a plain one, so that expectations are readable. */
const readable = (text: string): string => text.replaceAll(/[\u00a0\u202f]/g, ' ')

test.each([
  [123456, 'USD', '$1,234.56'],
  [5, 'USD', '$0.05'],
  [0, 'USD', '$0.00'],
  [-0, 'USD', '$0.00'],
  [-5, 'USD', '-$0.05'],
  [-123456, 'USD', '-$1,234.56'],
  [100, 'USD', '$1.00'],
  [Number.MAX_SAFE_INTEGER, 'USD', '$90,071,992,547,409.91'],
  [Number.MIN_SAFE_INTEGER, 'USD', '-$90,071,992,547,409.91'],
  [Number.MAX_SAFE_INTEGER - 1, 'USD', '$90,071,992,547,409.90'],
  [Number.MAX_SAFE_INTEGER, 'JPY', '¥9,007,199,254,740,991'],
  [Number.MAX_SAFE_INTEGER, 'BHD', 'BHD 9,007,199,254,740.991'],
  [Number.MIN_SAFE_INTEGER, 'CLF', '-CLF 900,719,925,474.0991'],
  [-0, 'JPY', '¥0'],
  [-1, 'JPY', '-¥1'],
  [-1, 'CLF', '-CLF 0.0001'],
])('%d minor units of %s are %s', (amount, currency, text) => {
  expect(readable(formatAmount({ amount, currency }, 'en'))).toBe(text)
})

// ISO 4217, list one of 2024-06-25: every code whose minor unit is not 2, some of which differ in
// CLDR.
test.each([
  ['0', 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF'],
  ['0', 'XAG XAU XBA XBB XBC XBD XDR XPD XPT XSU XTS XUA XXX'],
  [
    '0.00',
    'USD EUR GBP HUF IDR COP PKR LAK MMK AFN ALL IRR KPW LBP MGA SOS SYP YER CRC HRK MRU SLE ZWG XCG XAD',
  ],
  ['0.000', 'BHD IQD JOD KWD LYD OMR TND'],
  ['0.0000', 'CLF UYW'],
  ['0.00', 'QQQ ABC'],
])('the smallest unit has the decimals of %s for %s', (pattern, codes) => {
  for (const currency of codes.split(' ')) {
    const shown = formatAmount({ amount: 0, currency }, 'en').replace(/^.*?(?=[0-9][0-9.]*$)/, '')
    expect(`${currency} ${shown}`).toBe(`${currency} ${pattern}`)
  }
})

test('a currency may be in lower case', () => {
  expect(formatAmount({ amount: 500, currency: 'jpy' }, 'en')).toBe('¥500')
  expect(formatAmount({ amount: 500, currency: 'Usd' }, 'en')).toBe('$5.00')
})

test('a balance and a service are formatted directly, whatever other fields they have', () => {
  const rules = { minQuantity: 1, maxQuantity: 9, stepQuantity: 1 }
  const service = { productId: 'p', amount: 250, currency: 'EUR', ...rules }
  expect(formatAmount(service, 'en')).toBe('€2.50')
  expect(formatAmount(Object.freeze({ amount: 99, currency: 'EUR', stock: 'low' }), 'en')).toBe('€0.99')
})

test.each([
  ['de', '-1.234.567,08 €'],
  ['de-CH', "EUR-1'234'567.08"],
  ['fr', '-1 234 567,08 €'],
  ['hi-IN', '-€12,34,567.08'],
  ['es', '-1.234.567,08 €'],
  ['hi-IN-u-nu-deva', '-€१२,३४,५६७.०८'],
  ['en-u-nu-hanidec', '-€一,二三四,五六七.〇八'],
  // Digits outside the Basic Multilingual Plane are two code units each.
  ['en-u-nu-mathbold', '-€𝟏,𝟐𝟑𝟒,𝟓𝟔𝟕.𝟎𝟖'],
])('in locale %s, a negative amount of 1234567.08 euros is %s', (locale, text) => {
  const shown = readable(formatAmount({ amount: -123456708, currency: 'EUR' }, locale))
  expect(shown.replaceAll('’', "'")).toBe(text)
})

test("the locale may be a list or an Intl.Locale, and defaults to the runtime's", () => {
  const money = { amount: 150, currency: 'EUR' }
  expect(readable(formatAmount(money, ['de', 'en']))).toBe('1,50 €')
  expect(readable(formatAmount(money, new Intl.Locale('de')))).toBe('1,50 €')
  const runtimes = new Intl.NumberFormat(undefined, { style: 'currency', currency: 'EUR' })
  expect(formatAmount(money)).toBe(runtimes.format(1.5))
})

describe('what cannot be formatted is refused with the field at fault', () => {
  const refuses = (money: object, locale: unknown, path: string): void => {
    const format = (): string => formatAmount(money as never, locale as string)
    const issues = [{ path, message: expect.any(String) }]
    expect(format).toThrow(expect.objectContaining({ code: 'invalid_request', issues }))
  }

  test.each([1.5, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY, '100', 100n, undefined])(
    'formatting rejects the amount %o',
    (amount) => refuses({ amount, currency: 'EUR' }, 'en', 'amount'),
  )

  test.each(['', 'EU', 'EURO', 'E1R', '€€€', 'EU\u0131', ' EUR', 'EUR\n', 978, null])(
    'formatting rejects the currency %j',
    (currency) => refuses({ amount: 1, currency }, 'en', 'currency'),
  )

  test.each([['de_DE'], [''], ['x'], [null], [['de', '!']]])('formatting rejects the locale %j', (locale) =>
    refuses({ amount: 1, currency: 'EUR' }, locale, 'locale'),
  )
})
