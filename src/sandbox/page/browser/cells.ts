import { element } from './elements.ts'

export function code(text: string): HTMLElement {
  // Only a long string may break at any character: a narrow column must not break short strings.
  return element('code', text.length > 40 ? { class: 'long' } : {}, text)
}

export function badge(kind: 'good' | 'warn' | 'bad' | 'info' | 'plain', text: string): HTMLElement {
  return element('span', { class: `badge ${kind}` }, text)
}

/** Inserts the decimal point into a string, because dividing a large amount could round it. */
export function money(amount: number, currency: string): string {
  const format = new Intl.NumberFormat('en', { style: 'currency', currency })
  const digits = format.resolvedOptions().maximumFractionDigits ?? 2
  const text = String(Math.abs(amount)).padStart(digits + 1, '0')
  const whole = `${amount < 0 ? '-' : ''}${text.slice(0, text.length - digits)}`
  // The cast is safe: the string has only digits, a sign and a decimal point.
  return format.format((digits === 0 ? whole : `${whole}.${text.slice(-digits)}`) as `${number}`)
}

export function time(at: number): HTMLElement {
  const date = new Date(at)
  return element('time', { datetime: date.toISOString() }, date.toLocaleTimeString('en-GB'))
}
