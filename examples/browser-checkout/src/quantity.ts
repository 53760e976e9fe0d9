/** Computes which quantities the picker offers. Independent of the page. */
import { checkQuantity, type Service } from 'customer-ordering-sdk'

/** The range of quantities that the picker offers; undefined if the service's rules leave none. */
export interface Choices {
  readonly first: number
  readonly last: number
  readonly step: number
}

export function choicesOf(service: Service): Choices | undefined {
  const first = nextQuantity(service, Number.NEGATIVE_INFINITY, 1)
  const last = nextQuantity(service, Number.POSITIVE_INFINITY, -1)
  if (first === undefined || last === undefined) return undefined
  const second = nextQuantity(service, first, 1) ?? first + 1
  return { first, last, step: second - first }
}

/**
 * The next quantity above or below, counting steps from the minimum. The API document does not say
 * where steps begin, so `checkQuantity` accepts steps from zero, too. The picker offers only steps
 * from the minimum.
 */
export function nextQuantity(service: Service, quantity: number, direction: 1 | -1): number | undefined {
  const { minQuantity, maxQuantity, stepQuantity } = service
  const step = stepQuantity > 0 ? stepQuantity : 1
  const most = Math.floor((maxQuantity - minQuantity) / step)
  const at = Math.min(Math.max((quantity - minQuantity) / step, -1), most + 1)
  let count = direction === 1 ? Math.floor(at) + 1 : Math.ceil(at) - 1
  // A step may be a fraction, so only some multiples are whole quantities.
  for (let tries = 0; tries < 1_000 && count >= 0 && count <= most; tries++, count += direction) {
    const candidate = Number((minQuantity + count * step).toFixed(9))
    if (checkQuantity(service, candidate).ok) return candidate
  }
  return undefined
}

/** Reads a typed number, or returns NaN. Ignores spaces and digit separators. */
export function readQuantity(text: string): number {
  const digits = text.replaceAll(/[\s_'’]/g, '')
  return /^\d+$/.test(digits) ? Number(digits) : Number.NaN
}
