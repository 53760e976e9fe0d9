/** Names that people type from the habit of other SDKs, and what this package has instead. */
import { InvalidRequestError } from '../errors/classes.ts'

/**
 * Our name, or words of advice, and the names of others. The first row that fits counts. No pattern
 * fits a misspelling of another name of ours.
 */
const HABITS: readonly (readonly [ours: string, theirs: RegExp])[] = [
  ['apiKey', /token|^auth|^secret|^key$/i],
  ['idempotencyKey', /idempotency.?key|^key$/i],
  ['only create() takes it', /idempotency.?key/i],
  ['baseUrl', /host|^url|url$|endpoint/i],
  ['timeout', /^timeout.?ms$/i],
  ['maxRetries', /^(max|num).*retr|^retr[iy]|attempts/i],
  ['defaultHeaders', /header|userAgent/],
  ['pass it in the last argument', /^(signal|timeout|totalTimeout|maxRetries|headers)$/],
  ['only list() takes it, in its last argument', /^prefetch$/],
  ['until', /^status$/],
  ['concurrency', /parallel/i],
  ['use fetch or transport', /agent|proxy|client|dispatcher|^fetch(?!.$)/i],
  ['none is needed', /version/i],
  ['the API key implies it', /.Account|organi|project/],
  ['limit', /size|per_?page|count/i],
  ['iterate, or use offset', /page|cursor|starting|ending|^after|^before|skip/i],
  ['see client.request()', /query|params/i],
  ['use client.withOptions()', /^(apiKey|store|hooks|account)$/],
]

/** Returns our name if `readers` has it, or words of advice. Empty if the name is no known habit. */
export function habitOf(name: string, readers: object): string {
  const found = HABITS.find(
    ([ours, theirs]) => (ours.includes(' ') || Object.hasOwn(readers, ours)) && theirs.test(name),
  )
  return found?.[0] ?? ''
}

type Methods = Readonly<Record<string, string>>

const RESPONSE = 'pass the awaited result to responseInfo()'
const NO_ENDPOINT = 'the API has no such endpoint'

export const METHODS_OF_CALLS: Methods = {
  withResponse: RESPONSE,
  asResponse: RESPONSE,
  autoPagingToArray: 'use toArray({ max })',
  autoPagingEach: 'use for await',
}

export const METHODS_OF_RESOURCES: Methods = {
  get: 'use retrieve()',
  search: NO_ENDPOINT,
  del: NO_ENDPOINT,
  delete: NO_ENDPOINT,
  cancel: NO_ENDPOINT,
  update: NO_ENDPOINT,
}

/** The types do not declare these methods, so that editors do not offer them. */
export function answerHabits(prototype: object, methods: Methods): void {
  for (const [name, advice] of Object.entries(methods))
    Object.defineProperty(prototype, name, {
      value() {
        throw new InvalidRequestError(`There is no ${name}(): ${advice}. Nothing was sent.`)
      },
    })
}
