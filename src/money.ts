import { InvalidRequestError } from './errors.ts'

/** What {@link formatAmount} formats. A `Balance` and a `Service` are such; an `Order` needs its currency added. */
export interface Money {
  /** Minor currency units (cents, yen, fils); a safe integer, may be negative. */
  readonly amount: number
  /** ISO 4217 currency code of `amount`: three letters, in any case. */
  readonly currency: string
}

/**
 * Decimals of currencies by ISO 4217, "list one" of 2024-06-25, column "minor unit", wherever it is not 2. Where the
 * list calls a minor unit not applicable (metals, accounting units, XTS, XXX), the unit itself is the smallest: 0.
 *
 * Not asked of Intl: its figures follow CLDR, which says how prices are usually shown, and changes. By it, 12345 HUF
 * (123.45 forint) would have no decimals, and an amount cut to whole units would be wrong by a factor of 100.
 */
const CODES_BY_DECIMALS: readonly (readonly [decimals: number, codes: string])[] = [
  [0, 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF'],
  [0, 'XAG XAU XBA XBB XBC XBD XDR XPD XPT XSU XTS XUA XXX'],
  [3, 'BHD IQD JOD KWD LYD OMR TND'],
  [4, 'CLF UYW'],
]

/** Decimals of a currency given in capital letters. Codes that are in no list are most likely newer than ours: 2. */
function decimalsOf(code: string): number {
  return CODES_BY_DECIMALS.find(([, codes]) => codes.includes(code))?.[0] ?? 2
}

/**
 * An amount as people of a locale write it: `{ amount: 123456, currency: 'EUR' }` is `€1,234.56` in English.
 *
 * Exact for every safe integer: the amount is split by its digits and never divided. Decimals follow ISO 4217 (JPY 0,
 * BHD 3, UYW 4, unknown codes 2) and are all shown; symbol, separators, digits and sign follow the locale.
 *
 * @param money any object with `amount` (integer, minor currency units) and `currency` (ISO 4217 code)
 * @param locale BCP 47 tag or tags; default: the runtime's own
 * @throws {InvalidRequestError} if the amount is not a safe integer, the currency not three letters, or the locale not
 *   a valid tag
 */
export function formatAmount(money: Money, locale?: Intl.LocalesArgument): string {
  // Whatever is handed in: what has no amount is told so.
  const { amount, currency }: Money = Object(money)
  if (!Number.isSafeInteger(amount)) throw invalid('amount', 'is not a safe integer of minor currency units')
  if (typeof currency !== 'string' || !/^[A-Za-z]{3}$/.test(currency)) {
    throw invalid('currency', 'is not a three-letter ISO 4217 code')
  }
  const code = currency.toUpperCase()
  const decimals = decimalsOf(code)
  const format = currencyFormat(code, decimals, locale)
  const digits = String(Math.abs(amount)).padStart(decimals + 1, '0')
  const whole = Number(digits.slice(0, digits.length - decimals))
  const fraction = digits.slice(digits.length - decimals)
  // Only the whole units go through Intl, as a number; `-whole` keeps the sign of amounts like -5 cents (it is -0).
  // Intl takes decimal texts as well, but older runtimes turn those into floating-point numbers and round silently.
  return format
    .formatToParts(amount < 0 ? -whole : whole)
    .map((part) => (part.type === 'fraction' ? localDigits(format, fraction) : part.value))
    .join('')
}

function currencyFormat(currency: string, decimals: number, locale: Intl.LocalesArgument): Intl.NumberFormat {
  try {
    return new Intl.NumberFormat(locale, {
      style: 'currency',
      currency,
      minimumFractionDigits: decimals,
      maximumFractionDigits: decimals,
    })
  } catch {
    // The code has passed, so that only the locale is left to be at fault.
    throw invalid('locale', 'is not a valid BCP 47 language tag')
  }
}

/** Digits in the locale's own script, leading zeros kept: a 1 before them holds their place and is cut off again. */
function localDigits(format: Intl.NumberFormat, digits: string): string {
  const written = format.formatToParts(Number(`1${digits}`)).filter((part) => part.type === 'integer')
  const characters = [...written.map((part) => part.value).join('')]
  return characters.slice(1).join('')
}

function invalid(path: string, problem: string): InvalidRequestError {
  return new InvalidRequestError(`Cannot format the amount: ${path} ${problem}.`, {
    issues: [{ path, message: problem }],
  })
}
