/** The sentences of a message about the wallet: what is known of it, and what to do about that. */
import type { Charged } from './base.ts'

export function moneySentence(charged: Charged, what = 'The wallet'): string {
  return `${what} ${{ no: 'was not', yes: 'was', unknown: 'may have been' }[charged]} charged.`
}

const SAME = ' with the same arguments'

/**
 * @param change what the caller must change to repeat the order, with a leading space; false for a
 * call that does not repeat it
 */
export function chargedSentence(charged: Charged, change: string | false = ''): string {
  const repeat =
    charged === 'unknown' && change !== false
      ? ` Call create() again${change || SAME}, or run orders.recover().`
      : ''
  const never = charged === 'no' ? '' : ' Do not order again under another reference or key.'
  return moneySentence(charged) + repeat + never
}

/** A raw request has no record that could be continued or settled. */
export function rawRequestSentence(charged: Charged): string {
  const check = ' The client keeps no record of this request: check its effect before you repeat it.'
  return moneySentence(charged) + (charged === 'no' ? '' : check)
}

export function conflictSentence(charged: Charged): string {
  const settle =
    charged === 'unknown' ? ' Settle the existing order with orders.resolve() once you know its outcome.' : ''
  return `${moneySentence(charged, 'The existing order')} A different order needs its own reference or key.${settle}`
}
