/** The sentences of a message about the wallet: what is known of it, and what to do about that. */
import type { Charged } from './base.ts'

export function moneySentence(charged: Charged, what = 'The wallet'): string {
  return `${what} ${{ no: 'was not', yes: 'was', unknown: 'may have been' }[charged]} charged.`
}

const SAME = ' with the same request and reference (or key)'

/**
 * @param change what the caller must change to repeat the order, with a leading space; false for a
 * call that does not repeat it
 */
export function chargedSentence(charged: Charged, change: string | false = ''): string {
  const repeat =
    charged === 'unknown' && change !== false
      ? ` Call create() again${change || SAME}, or run orders.recover(). If the outcome stays unknown, settle the order with orders.resolve().`
      : ''
  const never = charged === 'no' ? '' : ' Do not order again under another reference or key.'
  return moneySentence(charged) + repeat + never
}

/** A raw request has no record that could be continued or settled. */
export function rawRequestSentence(charged: Charged): string {
  return charged === 'no'
    ? moneySentence(charged)
    : 'The request may have taken effect and charged the wallet. Check its effect before you send it again: the client has no record of it.'
}

export function conflictSentence(charged: Charged): string {
  const settle =
    charged === 'unknown'
      ? ' Close the existing order with orders.resolve() once you know its outcome. Processes that use the same references must share one store.'
      : ''
  return `${moneySentence(charged, 'The existing order')} A different order needs its own reference or key.${settle}`
}
