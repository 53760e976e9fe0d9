/**
 * The steps of each command by situation. Tests check each line, and the model checks whether one
 * is wrong.
 */

import { CLOCK_SKEW } from '../../../../src/http/deadline.ts'
import { type Command, type Facts, ruleFor } from '../../../../src/orders/protocol/rules.ts'
import { MINUTE, NOW, ORDER } from '../../../support/order-context.ts'
import { type Changes, changed, here, intent, record } from './found.ts'

export const busy = { busyUntil: NOW + 1, updatedAt: NOW - 1 }
export const stale = { firstSentAt: 0 }
const nameless = { slot: 'anon:same', externalOrderId: undefined, origin: 'random' } as const
export const created = { state: 'created', ambiguous: false, order: ORDER, body: undefined } as const
export const unread = { state: 'created', ambiguous: false } as const
const known = { ...unread, order: { id: 'o1' } } as const
export const refused = {
  state: 'rejected',
  ambiguous: false,
  body: undefined,
  rejection: { kind: 'refused' },
} as const
const lately = { updatedAt: NOW - 6 * MINUTE, busyUntil: NOW - 4 * MINUTE }
const ahead = (by: number) => ({ updatedAt: NOW + by })
const decided = (ago: number) => ({ decidedAt: NOW - ago })
const seen = decided(10 * MINUTE)
const HIDDEN = { connection: { mayResend: true } }
const CALLERS = { origin: 'caller' } as const
export const given = { wanted: { ...intent, idempotencyKey: record().key } }

type Line = readonly [when: string, expected: string, found?: Changes, facts?: Partial<Facts>]
const OTHER_KEY = { wanted: { ...intent, idempotencyKey: 'other' } }
const OTHER_PAYLOAD = { wanted: changed }
const CREATE: readonly Line[] = [
  ...Object.entries({ busy, open: {}, stale, created, unread, refused }).flatMap(([phase, its]): Line[] => [
    [`${phase}, under another key`, 'refuse key', its, OTHER_KEY],
    ...(phase === 'refused'
      ? []
      : [[`${phase}, with another payload`, 'refuse payload', its, OTHER_PAYLOAD] as const]),
  ]),
  ['busy', 'wait', busy],
  ['busy in this process', 'wait', {}, { isLive: true }],
  ['busy, past the window', 'wait', { ...busy, ...stale }],
  ['nameless and busy', 'refuse duplicate', { ...nameless, ...busy }],
  ['busy, and outwaited', 'send', busy, { outwaited: true }],
  ['busy in this process, and outwaited', 'wait', busy, { outwaited: true, isLive: true }],
  ['claimed by a clock that was set back since', 'send', { ...busy, ...ahead(CLOCK_SKEW + 1) }],
  ['open', 'send'],
  ['open and nameless', 'send', nameless],
  ['open and held', 'send', { hold: 'aborted' }],
  ['stale', 'refuse window', stale],
  ['stale and nameless', 'refuse window', { ...nameless, ...stale }],
  ['stale and held', 'refuse window', { ...stale, hold: 'conflict' }],
  ['created', 'tell', created],
  ['created, being written by a call', 'tell', { ...created, ...busy }],
  ['created and nameless, which makes room for a new order', 'send', { ...created, ...nameless }],
  ['unread, its id known', 'read', known],
  ['unread, its id known, past the window', 'read', { ...known, ...stale }],
  ['unread', 'send', unread],
  ['unread and nameless, so that there is no second order', 'send', { ...unread, ...nameless }],
  ['unread, past the window', 'refuse unreadable', { ...unread, ...stale }],
  ['unread, its body gone', 'refuse unreadable', { ...unread, body: undefined }],
  ['unread, being read by a call', 'wait', { ...unread, ...busy }],
  ['refused', 'send', refused],
  ['refused, and asked for again in this process', 'send', refused, { isLive: true }],
  ['refused, past the window', 'send', { ...refused, ...stale }],
  ["refused under the caller's key", 'send', { ...refused, ...CALLERS }],
  ["refused under the caller's key, past the window", 'refuse spent', { ...refused, ...CALLERS, ...stale }],
  [
    'refused under our key, which the caller gives now, past the window',
    'refuse spent',
    { ...refused, ...stale },
    given,
  ],
  [
    'refused, past the window, and may have been resent',
    'look_up past_window',
    { ...refused, ...stale },
    HIDDEN,
  ],
  ['refused, may have been resent, but inside the window', 'send', refused, HIDDEN],
  ['refused, may have been resent, but never sent', 'send', { ...refused, ...stale, attempts: 0 }, HIDDEN],
  ['refused, may have been resent, but nameless', 'send', { ...refused, ...stale, ...nameless }, HIDDEN],
  [
    'refused, may have been resent, but not in the list',
    'send',
    { ...refused, ...stale },
    { ...HIDDEN, isNotListed: true },
  ],
]
const RECOVER: readonly Line[] = [
  ['busy', 'in_progress', busy],
  ['busy in this process, taken over', 'in_progress', busy, { outwaited: true, isLive: true }],
  ['busy, taken over', 'send', busy, { outwaited: true }],
  ['open', 'send'],
  ['open, aborted by its caller', 'look_up held', { hold: 'aborted' }],
  ['open, refused after doubt', 'look_up held', { hold: 'refused' }],
  ['open, in conflict', 'look_up held', { hold: 'conflict' }],
  ['stale', 'look_up past_window', stale],
  ['stale, held', 'look_up held', { ...stale, hold: 'aborted' }],
  ['created', 'tell', created],
  ['unread', 'send', unread],
  ['unread, its id known', 'read', known],
  ['unread, past the window', 'look_up past_window', { ...unread, ...stale }],
  ['unread, its body gone', 'look_up past_window', { ...unread, body: undefined }],
  ['refused', 'tell', refused],
]
export const found = { orderId: 'o1' }
const other = { orderId: 'o2' }
const CONFIRM: readonly Line[] = [
  ['busy', 'refuse busy', busy, found],
  ['busy in this process', 'refuse busy', {}, { ...found, isLive: true }],
  ['open', 'verify', {}, found],
  ['stale', 'verify', stale, found],
  ['created', 'verify', created, found],
  ['created with another id', 'refuse other_order', created, other],
  ['unread', 'verify', unread, found],
  ['unread, its id known', 'verify', known, found],
  ['unread, with another id', 'refuse other_order', known, other],
  ['refused', 'verify', refused, found],
]
const ABANDON: readonly Line[] = [
  ['busy', 'refuse busy', busy, seen],
  ...(['open', 'stale'] as const).flatMap((phase): Line[] => {
    const its = phase === 'stale' ? stale : {}
    return [
      [phase, 'close', its, seen],
      [`${phase}, and its call may be running`, 'refuse busy', { ...its, ...lately }, seen],
      [`${phase}, and an overtaken call may be running`, 'refuse busy', { ...its, othersUntil: NOW }, seen],
      [`${phase}, and written since`, 'refuse changed', its, decided(11 * MINUTE)],
      [`${phase}, and written a little ahead`, 'refuse changed', { ...its, ...ahead(CLOCK_SKEW) }, seen],
      [`${phase}, and written far ahead`, 'close', { ...its, ...ahead(CLOCK_SKEW + 1) }, seen],
      [`${phase}, by a clock that was set back since`, 'refuse changed', its, decided(-1)],
    ]
  }),
  ['created', 'refuse created', created, seen],
  ['unread', 'refuse created', unread, seen],
  ['refused', 'tell', refused, seen],
]
const FORGET: readonly Line[] = [
  ['busy', 'refuse unsettled', busy],
  ['open', 'refuse unsettled'],
  ['stale', 'refuse unsettled', stale],
  ['created', 'empty', created],
  ['unread', 'refuse unsettled', unread],
  ['refused', 'empty', refused],
]

/** Each line is a record of an order, and facts, in which a command takes a step. */
export const LINES = Object.entries({
  create: CREATE,
  recover: RECOVER,
  confirm: CONFIRM,
  abandon: ABANDON,
  forget: FORGET,
}).flatMap(([command, lines]) =>
  lines.map(([when, expected, changes, facts]) => ({
    command: command as Command,
    when,
    expected,
    changes,
    facts,
  })),
)
export const said = (step: object): string => Object.values(step).join(' ')
export const factsOf = (facts: Partial<Facts> = {}): Facts => ({ ...here, wanted: intent, ...facts })

/** Without a record. */
export const ABSENT: readonly (readonly [Command, string])[] = [
  ['create', 'send'],
  ['recover', 'nothing'],
  ['confirm', 'verify'],
  ['abandon', 'refuse unknown'],
  ['forget', 'nothing'],
]

/** The first line that the current rules do not match. */
export function wrongLine(): string | undefined {
  for (const [command, expected] of ABSENT)
    if (said(ruleFor(command, undefined, factsOf())) !== expected) return `${command} without a record`
  for (const { command, when, expected, changes, facts } of LINES)
    if (said(ruleFor(command, record(changes), factsOf(facts))) !== expected)
      return `${command} of an order ${when}`
  return undefined
}
