import { InvalidRequestError } from './errors/classes.ts'

/**
 * The input of {@link formatAmount}.
 *
 * `Balance` and `Service` fit as they are. For an `Order`, add the currency.
 */
export interface Money {
  /** Minor currency units (cents, yen, fils); a safe integer, may be negative. */
  readonly amount: number
  /** ISO 4217 currency code of `amount`: three letters, in any case. */
  readonly currency: string
}

/**
 * Currencies that do not have 2 decimals in ISO 4217, "list one" of 2024-06-25, column "minor
 * unit".
 *
 * If the list shows "not applicable" (metals, accounting units, XTS, XXX), the unit itself is the
 * smallest, so the currency has 0 decimals.
 *
 * Intl is no substitute: it follows CLDR, which describes how prices are usually shown. CLDR gives
 * HUF no decimals, so 12345 (123.45 forint) would appear 100 times too large.
 */
const CODES_BY_DECIMALS: readonly (readonly [decimals: number, codes: string])[] = [
  [0, 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF'],
  [0, 'XAG XAU XBA XBB XBC XBD XDR XPD XPT XSU XTS XUA XXX'],
  [3, 'BHD IQD JOD KWD LYD OMR TND'],
  [4, 'CLF UYW'],
]

function decimalsOf(code: string): number {
  // An unknown code is probably newer than the list. Most currencies have 2 decimals.
  return CODES_BY_DECIMALS.find(([, codes]) => codes.includes(code))?.[0] ?? 2
}

/**
 * Formats an amount for a locale: `{ amount: 123456, currency: 'EUR' }` is `€1,234.56` in English.
 *
 * The result is exact for every safe integer, and shows all decimals of ISO 4217 (JPY 0, BHD 3,
 * UYW 4, unknown codes 2). Symbol, separators, digits and sign follow the locale.
 *
 * @param locale BCP 47 tag or tags; default: the runtime's locale
 * @throws {InvalidRequestError} if the amount is not a safe integer, the currency not three
 * letters, or the locale not a valid tag
 * @example
 * formatAmount(await client.balance.retrieve(), 'en') // '€1,234.56'
 */
export function formatAmount(money: Money, locale?: Intl.LocalesArgument): string {
  // JavaScript callers may pass null, which cannot be destructured.
  const { amount, currency }: Money = Object(money)
  if (!Number.isSafeInteger(amount)) throw invalid('amount', 'is not a safe integer of minor currency units')
  if (!isCurrencyCode(currency)) {
    throw invalid('currency', 'is not a three-letter ISO 4217 code')
  }
  const code = currency.toUpperCase()
  const decimals = decimalsOf(code)
  const format = currencyFormat(code, decimals, locale)
  const digits = String(Math.abs(amount)).padStart(decimals + 1, '0')
  const whole = Number(digits.slice(0, digits.length - decimals))
  const fraction = digits.slice(digits.length - decimals)
  // Intl formats only the whole units: older runtimes silently round a decimal string to a
  // floating-point number. For -5 cents the whole units are -0, which preserves the sign.
  return format
    .formatToParts(amount < 0 ? -whole : whole)
    .map((part) => (part.type === 'fraction' ? localDigits(format, fraction) : part.value))
    .join('')
}

export function isCurrencyCode(currency: unknown): boolean {
  return typeof currency === 'string' && /^[A-Za-z]{3}$/.test(currency)
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
    // The currency was checked before, so the locale is wrong.
    throw invalid('locale', 'is not a valid BCP 47 language tag')
  }
}

function localDigits(format: Intl.NumberFormat, digits: string): string {
  // The added 1 preserves leading zeros, and is removed below.
  const written = format.formatToParts(Number(`1${digits}`)).filter((part) => part.type === 'integer')
  const characters = [...written.map((part) => part.value).join('')]
  return characters.slice(1).join('')
}

function invalid(path: string, problem: string): InvalidRequestError {
  return new InvalidRequestError(`Cannot format the amount: ${path} ${problem}.`, {
    issues: [{ path, message: problem }],
  })
}
