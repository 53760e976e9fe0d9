import { describe, expect, it } from 'vitest'
import { CLOCK_SKEW } from '../../../../src/http/deadline.ts'
import { apiKeyTag, proxiedTag } from '../../../../src/identity/keys.ts'
import {
  isBusy,
  isFromFuture,
  isLate,
  mayAttempt,
  mayBeRunning,
  PERSON_SKEW,
  sameApiKey,
  startOf,
  tagOf,
} from '../../../../src/orders/protocol/keys.ts'
import { uuidV5 } from '../../../../src/uuid-v5.ts'
import { LEFT_OPEN, MINUTE, NOW, orderContext, WINDOW } from '../../../support/order-context.ts'
import { ATTEMPT, type Changes, record, timing } from './found.ts'

/** The shortest window that has room for one attempt, and the first use of a key with no more room left. */
const LEAST = ATTEMPT + CLOCK_SKEW
const TIGHT = NOW - WINDOW + LEAST

describe('whether an attempt may begin', () => {
  it.each<[boolean, string, number | undefined, object]>([
    [true, 'was never sent', undefined, {}],
    [true, 'is sent now', NOW, {}],
    [true, 'has room for exactly one attempt', TIGHT, {}],
    [false, 'lacks a millisecond for one', TIGHT - 1, {}],
    [true, 'lacks it, but the call has less time', TIGHT - 1, { attempt: ATTEMPT - 1 }],
    [false, 'has an age that is unknown', 0, {}],
    [true, 'was never sent, and the window is just an attempt', undefined, { safeRetryWindow: LEAST }],
    [false, 'was never sent, and the window is less', undefined, { safeRetryWindow: LEAST - 1 }],
  ])('a key may be sent (%s) if it %s', (may, _if, firstSentAt, changes) => {
    expect(mayAttempt(firstSentAt, { ...timing, ...changes })).toBe(may)
  })
})

describe('a claim', () => {
  const claim = { updatedAt: NOW, busyUntil: NOW + 1000 }

  it.each<[boolean, string, Changes, number]>([
    [true, 'until it ends', claim, 999],
    [false, 'at its end', claim, 1000],
    [true, 'under a clock a little behind', claim, -CLOCK_SKEW],
    [false, 'after the clock was set back', claim, -CLOCK_SKEW - 1],
    [false, 'without an end', { updatedAt: NOW }, 0],
  ])('a claim holds (%s) %s', (holds, _when, changes, at) => {
    const found = record(changes)
    expect(isBusy(found, NOW + at)).toBe(holds)
    expect(isLate(found, { ...timing, now: NOW + at })).toBe(!holds)
  })

  it('a call is late if its claim is over, or the window of its key', () => {
    const late = (changes: Changes): boolean => isLate(record({ ...claim, ...changes }), timing)
    expect(late({ firstSentAt: TIGHT })).toBe(false)
    expect(late({ firstSentAt: TIGHT - 1 })).toBe(true)
    expect(late({ busyUntil: NOW })).toBe(true)
  })
})

describe('whether a call may still be running', () => {
  const claimed = { updatedAt: NOW, busyUntil: NOW + 1000 }
  const overtaken = { ...claimed, othersUntil: NOW + 2000 }

  it.each<[boolean, string, Changes, number]>([
    [true, 'was just claimed', claimed, 0],
    [true, 'was claimed, five minutes and the length of the claim ago', claimed, 1000 + PERSON_SKEW],
    [false, 'was claimed longer ago', claimed, 1001 + PERSON_SKEW],
    [true, 'was claimed by a clock five minutes ahead', claimed, -1000 - PERSON_SKEW],
    [false, 'was claimed by a clock further ahead', claimed, -1001 - PERSON_SKEW],
    [true, 'was claimed over a call that has longer', overtaken, 2000 + PERSON_SKEW],
    [false, 'was claimed over a call that is over, too', overtaken, 2001 + PERSON_SKEW],
    [true, 'is settled, but a call that was overtaken may run', { updatedAt: NOW, othersUntil: NOW + 1 }, 0],
    [false, 'is settled', { updatedAt: NOW }, 0],
    [true, 'has a claim of a slow clock', { updatedAt: NOW, busyUntil: NOW - 1 }, PERSON_SKEW - 1],
    [false, 'had a claim of a slow clock', { updatedAt: NOW, busyUntil: NOW - 1 }, PERSON_SKEW],
    [false, 'has no claim, by a clock that begins at 0', { updatedAt: 0 }, -NOW],
  ])('a call may be running (%s) if the record %s', (may, _if, changes, at) => {
    expect(mayBeRunning(record(changes), NOW + at)).toBe(may)
  })
})

describe('a record from the future', () => {
  const SKEWED = NOW + CLOCK_SKEW
  const FAR = NOW + 60 * MINUTE
  it.each<[boolean, string, Changes]>([
    [false, 'was never sent, whenever it was written', { updatedAt: FAR, firstSentAt: undefined }],
    [false, 'bears the mark', { updatedAt: FAR, firstSentAt: 0, firstKeySentAt: 0 }],
    [false, 'was written and sent now', { updatedAt: NOW, firstSentAt: NOW }],
    [false, 'was sent by a clock a little ahead', { updatedAt: NOW, firstSentAt: SKEWED }],
    [true, 'was sent by a clock far ahead', { updatedAt: SKEWED, firstSentAt: SKEWED + 1 }],
    [false, 'was sent a little after it was written', { updatedAt: NOW - CLOCK_SKEW, firstSentAt: NOW }],
    [true, 'was sent long after it was written', { updatedAt: NOW - CLOCK_SKEW - 1, firstSentAt: NOW }],
    [false, 'was written by a clock a little ahead', { updatedAt: SKEWED, firstSentAt: NOW }],
    [true, 'was written by a clock far ahead', { updatedAt: SKEWED + 1, firstSentAt: NOW }],
    [true, 'has a first key from the future', { updatedAt: NOW, firstSentAt: 0, firstKeySentAt: SKEWED + 1 }],
    [false, 'has a first key from now', { updatedAt: NOW, firstSentAt: NOW, firstKeySentAt: NOW }],
  ])('a record is from the future (%s) if it %s', (expected, _if, changes) => {
    expect(isFromFuture(record(changes), NOW)).toBe(expected)
  })
})

describe('the key with which a refused order is sent again', () => {
  const later = { generation: 2, highest: 3 }
  const caller = { origin: 'caller' } as const
  const random = { origin: 'random', generation: 2 } as const
  it.each<[ReturnType<typeof startOf>, string, Changes, given?: string]>([
    ['same', 'the caller gives it', {}, LEFT_OPEN.key],
    [undefined, 'the caller gives it, and its window is over', { firstSentAt: 0 }, LEFT_OPEN.key],
    ['same', "it is the caller's", caller],
    ['same', "it is the caller's, and was never sent", { ...caller, firstSentAt: undefined }],
    [undefined, "it is the caller's, and its window is over", { ...caller, firstSentAt: TIGHT - 1 }],
    ['same', 'it is the first one', {}],
    ['same', 'it is the first one, and was never sent', { firstSentAt: undefined }],
    ['next', 'it is the first one, and its window is over', { firstSentAt: TIGHT - 1 }],
    ['first', 'the window of the first one is open', { ...later, firstKeySentAt: TIGHT }],
    [
      'first',
      'only the window of the first one is open',
      { ...later, firstKeySentAt: TIGHT, firstSentAt: 0 },
    ],
    ['same', 'the window of the first one is over', { ...later, firstKeySentAt: TIGHT - 1 }],
    ['next', 'both windows are over', { ...later, firstKeySentAt: 0, firstSentAt: 0 }],
    ['same', 'it is a later one, and the first was never sent', later],
    ['same', 'it is random', { ...random, firstKeySentAt: NOW }],
    ['next', 'it is random, and its window is over', { ...random, firstSentAt: 0 }],
  ])('the key is %s if %s', (start, _if, changes, given) => {
    expect(startOf(record(changes), timing, given)).toBe(start)
  })

  it('a key that was never sent is not skipped for an attempt that outlasts its window', () => {
    expect(startOf(record({ firstSentAt: undefined }), { ...timing, attempt: 60 * MINUTE }, undefined)).toBe(
      'same',
    )
  })
})

const context = orderContext()

describe('the API key that may send', () => {
  const { key } = LEFT_OPEN
  const sent = { ...LEFT_OPEN, apiKeyTag: apiKeyTag(uuidV5, key, 'secret') }
  const { get } = context.connection.credentials
  const proxied = orderContext({}, { credentials: { rotates: true, get, proxyTag: 'of the proxy' } })
  const byProxy = proxiedTag(uuidV5, key, 'of the proxy')

  it('an order is repeated only under the API key that sent it, unless the service scopes keys by customer', () => {
    expect(sameApiKey(context, sent, 'secret')).toBe(true)
    expect(sameApiKey(context, sent, 'rotated')).toBe(false)
    expect(sameApiKey(context, sent, null)).toBe(false)
    expect(sameApiKey(proxied, { ...sent, apiKeyTag: byProxy }, null)).toBe(true)
    expect(sameApiKey(orderContext({ idempotencyScope: 'customer' }), sent, 'rotated')).toBe(true)
  })

  it.each([
    ['of the API key', sent.apiKeyTag, context, 'secret', undefined],
    ['of the API key, even if a proxy added one before', sent.apiKeyTag, proxied, 'secret', byProxy],
    ['of the proxy', byProxy, proxied, null, undefined],
    ['that the proxy told an earlier page', byProxy, context, null, byProxy],
    ['of no API key, until the proxy tells its own', 'none', context, null, 'of an API key'],
  ])('the tag is the one %s', (_of, tag, its, credential, stored) => {
    expect(tagOf(its, key, credential, stored)).toBe(tag)
  })
})
