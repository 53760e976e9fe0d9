import { invalidArgument } from './errors/classes.ts'
import type { Service } from './schemas/service.ts'

/** The quantity rules of a service. */
export type QuantityRules = Pick<Service, 'minQuantity' | 'maxQuantity' | 'stepQuantity'>

/**
 * Why a quantity cannot be ordered:
 *
 * - `not_a_number`: not a number, or NaN or infinite
 * - `not_an_integer`: the API accepts only integers
 * - `below_minimum`: less than `minQuantity`, or less than 1
 * - `above_maximum`: more than `maxQuantity`, or more than the largest safe integer
 * - `off_step`: does not fit `stepQuantity`, whether counted from zero or from `minQuantity`
 * - `no_valid_quantity`: the rules allow no quantity: the minimum is above the maximum, or no step
 *   lies between them
 */
export type QuantityProblem =
  | 'not_a_number'
  | 'not_an_integer'
  | 'below_minimum'
  | 'above_maximum'
  | 'off_step'
  | 'no_valid_quantity'

/** Result of {@link checkQuantity}. */
export type QuantityCheck =
  | { readonly ok: true }
  | {
      readonly ok: false
      readonly reason: QuantityProblem
      /** One English sentence for a developer or a log. */
      readonly message: string
      /**
       * The closest valid quantities: the next lower, the next higher, or both, in this order.
       * Empty only for `not_a_number` and `no_valid_quantity`.
       */
      readonly nearest: readonly number[]
    }

/**
 * Checks a quantity against a service's `minQuantity`, `maxQuantity` and `stepQuantity`. Sends
 * nothing.
 *
 * The API document does not state whether steps are counted from zero or from the minimum. So the
 * check accepts a quantity that fits either; the service makes the final decision. Decimal
 * arithmetic is exact: 0.3 is three steps of 0.1.
 *
 * The service's fields may have any value. A bound is ignored if it is not a finite number. The
 * step is ignored if it is not a finite number above zero, or if the minimum is unknown.
 *
 * @param service a `Service`, or its three quantity fields
 * @param quantity the quantity to order: the API accepts a positive integer
 * @throws {InvalidRequestError} if the service is not an object: without rules, any quantity would
 * pass
 * @example
 * const checked = checkQuantity(service, 25)
 * if (!checked.ok) console.log(checked.reason, checked.nearest)
 */
export function checkQuantity(service: QuantityRules, quantity: number): QuantityCheck {
  if (typeof service !== 'object' || service === null) {
    throw invalidArgument('service', 'must be an object', 'checkQuantity: ')
  }
  if (typeof quantity !== 'number' || !Number.isFinite(quantity)) {
    return { ok: false, reason: 'not_a_number', message: 'Quantity is not a finite number.', nearest: [] }
  }
  const rules = readRules(service)
  const problem = findProblem(rules, quantity)
  if (problem === undefined) return { ok: true }
  const [reason, message] = problem
  return { ok: false, reason, message, nearest: nearestValid(rules, quantity) }
}

/** The integers `first`, `first ± every`, `first ± 2 · every`, …; `every` is above zero. */
interface Steps {
  readonly first: bigint
  readonly every: bigint
}

interface Rules {
  /** Smallest and largest integer within the bounds. `from` is above `to` if there is none. */
  readonly from: bigint
  readonly to: bigint
  /** Steps from zero and steps from the minimum, each only if it contains integers. */
  readonly steps: readonly Steps[]
  /** For messages. Undefined if the service's field is ignored. */
  readonly min: number | undefined
  readonly max: number | undefined
  readonly step: number | undefined
}

function readRules(service: QuantityRules): Rules {
  const min = finite(service.minQuantity)
  const max = finite(service.maxQuantity)
  const given = finite(service.stepQuantity)
  const step = given !== undefined && given > 0 && min !== undefined ? given : undefined
  return {
    from: BigInt(Math.ceil(Math.max(1, min ?? 1))),
    to: BigInt(Math.floor(Math.min(Number.MAX_SAFE_INTEGER, max ?? Number.MAX_SAFE_INTEGER))),
    steps: [0, min ?? 0].map((base) => integerSteps(base, step ?? 1)).filter((steps) => steps !== undefined),
    min,
    max,
    step,
  }
}

function finite(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

function findProblem(rules: Rules, quantity: number): readonly [QuantityProblem, string] | undefined {
  const { from, to, steps, min, max, step } = rules
  if (steps.every((each) => atOrAbove(each, from) > to)) {
    const known = Object.entries({ minimum: min, maximum: max, step }).filter(
      ([, value]) => value !== undefined,
    )
    const listed = known.map(([name, value]) => `${name} ${value}`).join(', ')
    return ['no_valid_quantity', `The service's rules allow no quantity (${listed}).`]
  }
  if (!Number.isInteger(quantity)) return ['not_an_integer', `Quantity ${quantity} is not an integer.`]
  const wanted = BigInt(quantity)
  if (wanted < from)
    return ['below_minimum', `Quantity ${quantity} is below the minimum of ${Math.max(1, min ?? 1)}.`]
  if (wanted > to) {
    const largest = Math.min(Number.MAX_SAFE_INTEGER, max ?? Number.MAX_SAFE_INTEGER)
    return ['above_maximum', `Quantity ${quantity} is above the maximum of ${largest}.`]
  }
  if (steps.some((each) => atOrAbove(each, wanted) === wanted)) return undefined
  const counted = min === 0 ? 'zero' : `zero or from the minimum of ${min}`
  return ['off_step', `Quantity ${quantity} does not fit the step of ${step}, counted from ${counted}.`]
}

function nearestValid({ from, to, steps }: Rules, quantity: number): number[] {
  const start = BigInt(Math.floor(quantity))
  const lower = steps
    .map((each) => atOrBelow(each, start < to ? start : to))
    .filter((candidate) => candidate >= from)
  const after = BigInt(Math.ceil(quantity))
  const higher = steps
    .map((each) => atOrAbove(each, after > from ? after : from))
    .filter((candidate) => candidate <= to)
  const closest = [
    ...lower.sort((a, b) => (a > b ? -1 : 1)).slice(0, 1),
    ...higher.sort((a, b) => (a < b ? -1 : 1)).slice(0, 1),
  ]
  return closest.map(Number)
}

function atOrAbove({ first, every }: Steps, start: bigint): bigint {
  return start + modulo(first - start, every)
}

function atOrBelow({ first, every }: Steps, start: bigint): bigint {
  return start - modulo(start - first, every)
}

/**
 * Finds the integers among base, base ± step, base ± 2 · step, …. Undefined if there are none
 * (0.25, 0.75, 1.25, …).
 *
 * A power of ten, `scale`, makes both base and step integers. An integer q is among the results if
 * and only if q · scale ≡ base · scale (mod step · scale), which the extended Euclid solves for q.
 */
function integerSteps(base: number, step: number): Steps | undefined {
  const [baseDigits, baseDecimals] = decimal(base)
  const [stepDigits, stepDecimals] = decimal(step)
  const decimals = Math.max(baseDecimals, stepDecimals)
  const scaledBase = baseDigits * 10n ** BigInt(decimals - baseDecimals)
  const scaledStep = stepDigits * 10n ** BigInt(decimals - stepDecimals)
  const [divisor, factor] = commonDivisor(10n ** BigInt(decimals), scaledStep)
  if (scaledBase % divisor !== 0n) return undefined
  return { first: (scaledBase / divisor) * factor, every: scaledStep / divisor }
}

/** Reads the exact decimal value that JavaScript prints for the number: digits · 10^-decimals. */
function decimal(value: number): [digits: bigint, decimals: number] {
  const [mantissa = '', exponent = '0'] = String(value).split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const digits = BigInt(whole + fraction)
  const decimals = fraction.length - Number(exponent)
  return decimals < 0 ? [digits * 10n ** BigInt(-decimals), 0] : [digits, decimals]
}

/**
 * Extended Euclid for positive numbers: the greatest common divisor, and an x with a · x ≡ divisor
 * (mod b).
 */
function commonDivisor(a: bigint, b: bigint): [divisor: bigint, x: bigint] {
  let [divisor, rest] = [a, b]
  let [x, nextX] = [1n, 0n]
  while (rest !== 0n) {
    const quotient = divisor / rest
    ;[divisor, rest] = [rest, divisor - quotient * rest]
    ;[x, nextX] = [nextX, x - quotient * nextX]
  }
  return [divisor, x]
}

/** Never negative, unlike `%`. */
function modulo(value: bigint, divisor: bigint): bigint {
  return ((value % divisor) + divisor) % divisor
}
