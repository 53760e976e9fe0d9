/** Texts about services and orders, in one place for translation and review. */
import type { CustomerOrderingError, Service } from 'customer-ordering-sdk'

declare module 'customer-ordering-sdk' {
  interface Service {
    /** The API document does not name the field of the stock state. This is the sandbox's field. */
    readonly stockState?: unknown
  }
}

/** Why an order was refused. Used only if nothing was charged. */
export function refusal(error: CustomerOrderingError | undefined): string {
  return `${reasonOf(error)} Nothing was charged.`
}

function reasonOf(error: CustomerOrderingError | undefined): string {
  switch (error?.code) {
    case 'payment_required':
      return 'Your balance does not cover this order.'
    case 'order_not_accepted':
      return 'This service cannot be ordered at the moment. It may be sold out, or not be available in this quantity.'
    case 'not_found':
      return 'This service is no longer available.'
    case 'authentication':
    case 'permission_denied':
      return 'You cannot order with this account. Sign in again.'
    case 'invalid_request':
    case 'bad_request':
      return 'The shop did not understand this order. Check what you entered.'
    case 'rate_limit':
      return 'There are too many orders at the moment. Try again in a moment.'
    case 'store':
      return 'Your order was not sent, because this browser could not store it. Free some space, or allow this site to store data.'
    case 'connection':
    case 'timeout':
      return 'The shop could not be reached. Check your connection, then try again.'
    default:
      return 'Your order was not placed. Try again later.'
  }
}

/** Why nothing can be chosen while an order is in this state. */
export const CLOSED = {
  form: '',
  placing: 'Your order is being placed.',
  checking: 'You can order something else once we know the outcome of your order.',
  placed: 'Press “Order something else” to choose again.',
  attention: 'Press “Order something else” to choose again.',
} as const

/** Why something could not be shown. */
export function readingFailed(what: string): string {
  return navigator.onLine ? `${what} could not be loaded.` : `${what} cannot be loaded: you are offline.`
}

/**
 * The API document shows no name of a service. Return your own titles, or a field that your service
 * sends.
 */
export function titleOf({ productId }: Service): string {
  const words = productId.replace(/^svc_/, '').replaceAll(/[_-]+/g, ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

export function isSoldOut({ stockState }: Service): boolean {
  return stockState === 'out_of_stock'
}

export function quantityRule(first: number, last: number, step: number): string {
  const range = `${formatNumber(first)} to ${formatNumber(last)}`
  return step === 1 ? range : `${range}, in steps of ${formatNumber(step)}`
}

export function formatNumber(value: number): string {
  return value.toLocaleString(navigator.language)
}
