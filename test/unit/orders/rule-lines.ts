/**
 * The steps of each command by situation. Tests check each line, and the model checks whether one
 * is wrong.
 */
import type { Facts, Wanted } from '../../../src/orders/conditions.ts'
import { ADOPTION_WINDOW, CLOCK_ERROR, CLOCK_SKEW, PLAIN_FACTS } from '../../../src/orders/conditions.ts'
import type { JournalRecord, RejectionKind } from '../../../src/orders/record.ts'
import { type Command, decide } from '../../../src/orders/rules.ts'
import { LEFT_OPEN } from '../../support/order-context.ts'
import { MINUTE, NOW, WINDOW } from '../../support/place.ts'

export const TOTAL = 2 * MINUTE

export const here = { ...PLAIN_FACTS, now: NOW, safeRetryWindow: WINDOW, totalTimeout: TOTAL }

/** Changes to a record. Undefined fields are removed. */
type Changes = { readonly [Field in keyof JournalRecord]?: JournalRecord[Field] | undefined }

/** A record of an order with a reference, opened a minute ago by a call that has ended. */
export function record(changes: Changes = {}): JournalRecord {
  const times = { firstSentAt: NOW - MINUTE, createdAt: NOW - MINUTE, updatedAt: NOW - MINUTE }
  const made: JournalRecord = { ...LEFT_OPEN, ...times, key: 'key-0', version: 1, fingerprint: 'same' }
  for (const [field, value] of Object.entries(changes)) {
    if (value === undefined) Reflect.deleteProperty(made, field)
    else Reflect.set(made, field, value)
  }
  return made
}

type Line = readonly [
  when: string,
  expected: string,
  found?: Changes,
  wanted?: Partial<Wanted> | undefined,
  at?: Partial<Facts> | undefined,
]

export const busy = { busyUntil: NOW + 1, updatedAt: NOW - 1 } as const
export const order = { id: 'ord_1', status: 'pending', amount: 1 }
export const created = { state: 'created', readable: true, order } as const
export const unreadable = { state: 'created', readable: false } as const
const known = { ...unreadable, order: { id: 'ord_1' } }
export const rejected = (kind: RejectionKind, changes: Changes = {}): Changes => ({
  state: 'rejected',
  rejection: { kind },
  ...changes,
})
export const refused = (changes: Changes = {}): Changes => rejected('refused', changes)
const first = (sentAt: number) => ({ first: { sentAt, refused: true } })

const payload = { fingerprint: 'other' }
const key = { idempotencyKey: 'mine' }
const otherApiKey = { sameApiKey: false }
const tight = NOW - WINDOW + TOTAL
const lately = first(NOW - MINUTE)
const second = { generation: 2 }
const foreign = { foreign: true }
const unsent = { firstSentAt: undefined }
const future = { updatedAt: NOW + CLOCK_SKEW + 1 }
const busyLong = { busyUntil: NOW + TOTAL, firstSentAt: NOW }
export const stale = { firstSentAt: 0 }
const notGenuine = { isGenuine: () => false }
const caller = { keyOrigin: 'caller' } as const
const random = { keyOrigin: 'random' } as const

/** `create()` with a reference: open, created, and closed without an order. */
const NAMED: readonly Line[] = [
  ['open and a live call has it', 'wait', busy],
  ['open and a live call has it, past the window', 'wait', { ...busy, ...stale }],
  ['open, nobody has it, inside the window', 'send stored'],
  ['open, its claim ran out', 'send stored', { busyUntil: NOW }],
  ['open, its claim is from the future', 'send stored', { ...future, ...busyLong }],
  ['open, under a key that the caller gives again', 'send stored', caller, { idempotencyKey: 'key-0' }],
  ['open, sent with another API key', 'refuse api_key', {}, {}, otherApiKey],
  ['open, past the window', 'refuse window', { firstSentAt: NOW - WINDOW }],
  ['open, with room for exactly one call', 'send stored', { firstSentAt: tight }],
  ['open, with too little room for a call', 'refuse window', { firstSentAt: tight - 1 }],
  ['open, sent in the future by a clock that went back', 'refuse window', { firstSentAt: NOW + 60 * MINUTE }],
  ['open, not known to be sent, but old', 'refuse window', { ...unsent, createdAt: NOW - WINDOW }],
  ['open with another payload', 'refuse payload', {}, payload],
  ['open with another payload, busy', 'refuse payload', busy, payload],
  ['open under another key', 'refuse key', {}, key],

  ['created', 'tell', created],
  ['created, long ago, with another API key', 'tell', { ...created, ...stale }, {}, otherApiKey],
  ['created with another payload', 'refuse payload', created, payload],
  ['created under another key', 'refuse key', created, key],
  ['created but unreadable, inside the window', 'send stored', unreadable],
  ['created but unreadable, id known, past the window', 'read', { ...known, ...stale }],
  ['created but unreadable, id known, other API key', 'read', known, {}, otherApiKey],
  ['created but unreadable, its body gone', 'read', { ...known, body: undefined }],
  ['created but unreadable, id unknown, past the window', 'refuse unreadable', { ...unreadable, ...stale }],
  ['created but unreadable, being read by a live call', 'wait', { ...unreadable, ...busy }],

  ['refused', 'send same', refused()],
  ['refused, changed payload', 'send same', refused(), payload],
  ['refused, other API key', 'send same', refused(), {}, otherApiKey],
  ['refused under a first key whose window is over', 'send next', refused(stale)],
  ['refused under a later key, first window open', 'send first', refused({ ...second, ...lately })],
  ['refused under a later key, first window tight', 'send next', refused({ ...second, ...first(tight - 1) })],
  [
    'closed under a later key that the service never looked at, after the window of the first',
    'send same',
    rejected('not_processed', { ...unsent, generation: 1, ...first(0) }),
  ],
  // An earlier version of the package has written it.
  ['refused under a later key, the first not noted', 'send first', refused({ generation: 1 })],
  // No other store could compute the first key.
  ['refused under a later random key', 'send same', refused({ generation: 1, ...random })],
  ['refused under a random key whose window is over', 'send next', refused({ ...random, ...stale })],
  ['refused by a clock that went back since', 'send next', refused({ firstSentAt: NOW + CLOCK_SKEW + 1 })],
  ['refused under the caller’s key inside its window', 'send same', refused(caller)],
  // No other key may replace it.
  ['refused under the caller’s key, past its window', 'refuse expired', refused({ ...caller, ...stale })],
  ['refused, another key is given', 'refuse key', refused(), key],
  ['in conflict inside the window', 'send same', rejected('conflict', { generation: 1, ...lately })],
  ['in conflict past the window', 'refuse window', rejected('conflict', stale)],
  [
    'not processed, another payload has the key, past the window',
    'refuse window',
    rejected('not_processed', { ...stale, ...foreign }),
  ],
  ['not processed, a new key is given', 'refuse key', rejected('not_processed'), key],
  ['never sent, another key is given', 'refuse key', rejected('cancelled', { attempts: 0 }), key],
  ['cancelled after a send, a new key is given', 'refuse key', rejected('cancelled'), key],
  ['given up by a person, another key is given', 'refuse key', rejected('abandoned'), key],
  ['another payload has the key', 'send same', rejected('conflict', foreign)],
  ['another payload has the key, a new key is given', 'refuse key', rejected('conflict', foreign), key],
  ['refused, another payload has the key, a new key is given', 'refuse key', refused(foreign), key],
]

/** `create()` with an order without a name. */
const ANONYMOUS: readonly Line[] = [
  ['open and a live call has it', 'refuse duplicate', busy],
  ['touched just now', 'send stored'],
  ['touched this moment', 'send stored', { updatedAt: NOW }],
  ['touched by a clock as far ahead as clocks may be', 'send stored', { updatedAt: NOW + CLOCK_SKEW }],
  ['touched 15 minutes ago', 'send stored', { updatedAt: NOW - ADOPTION_WINDOW }],
  ['touched longer ago', 'refuse age', { updatedAt: NOW - ADOPTION_WINDOW - 1 }],
  ['touched in the future', 'refuse age', future],
  ['past the window', 'refuse window', { firstSentAt: NOW - WINDOW }],
  ['created, to make room for a new order', 'send new', created],
  ['created but unreadable, so that there is no second order', 'send stored', unreadable],
  ['refused, which makes it a new order', 'send new', refused()],
]

/** `recover()`. */
const RECOVERED: readonly Line[] = [
  ['busy', 'leave', busy],
  ['busy, taken over', 'send stored', busy, {}, { outwaited: true }],
  ['busy in this process, taken over', 'leave', busy, {}, { outwaited: true, isLive: true }],
  ['open', 'send stored'],
  ['open, its row damaged', 'look_up corrupt', {}, {}, notGenuine],
  ['open, other API key', 'look_up api_key_changed', {}, {}, otherApiKey],
  ['open, aborted by its caller', 'look_up aborted', { hold: 'aborted' }],
  ['open, refused after doubt', 'look_up refused_after_doubt', { hold: 'refused' }],
  ['past the window', 'look_up past_window', stale],
  ['past the window, its row damaged', 'look_up corrupt', stale, {}, notGenuine],
  ['past the window, other API key', 'look_up api_key_changed', stale, {}, otherApiKey],
  ['past the window, aborted', 'look_up aborted', { ...stale, hold: 'aborted' }],
  ['past the window, refused after doubt', 'look_up refused_after_doubt', { ...stale, hold: 'refused' }],
  ['created', 'tell', created],
  ['unreadable', 'send stored', unreadable],
  ['unreadable, its body gone', 'look_up unreadable', { ...unreadable, body: undefined }],
  ['unreadable, its row damaged', 'look_up corrupt', unreadable, {}, notGenuine],
  ['unreadable, other API key', 'look_up api_key_changed', unreadable, {}, otherApiKey],
  ['unreadable, past the window', 'look_up past_window', { ...unreadable, ...stale }],
  ['refused', 'tell', refused()],
  ['refused, asked for again in this process', 'tell', refused(), {}, { isLive: true }],
  ['in conflict', 'look_up conflict', rejected('conflict')],
  ['in conflict, asked for again in this process', 'leave', rejected('conflict'), {}, { isLive: true }],
]

const live = { isLive: true }
const found = { orderId: 'ord_1' }
const unseen = { decidedAt: NOW - 2 * MINUTE }
const seen = { decidedAt: NOW - MINUTE }

/** A person's decision: the order exists, is abandoned, or is to be forgotten. */
const BY_A_PERSON: readonly (readonly [Extract<Command, 'resolve' | 'abandon' | 'forget'>, ...Line])[] = [
  ...[{}, stale, unreadable, rejected('conflict'), refused()].map(
    (changes) => ['resolve', JSON.stringify(changes), 'verify', changes, {}, found] as const,
  ),
  ['resolve', 'created', 'verify', created, {}, found],
  ['resolve', 'created under another id', 'refuse other_order', created, {}, { orderId: 'ord_2' }],
  ['resolve', 'unreadable under another id', 'refuse other_order', known, {}, { orderId: 'ord_2' }],
  ['resolve', 'busy', 'refuse busy', busy],
  ['resolve', 'created, and read by a call of this process', 'refuse busy', created, {}, live],
  ['resolve', 'refused, and asked for again in this process', 'refuse busy', refused(), {}, live],

  ...[{}, stale, rejected('conflict')].flatMap((changes) => [
    ['abandon', JSON.stringify(changes), 'close', changes, {}, seen] as const,
    ['abandon', `${JSON.stringify(changes)}, written since`, 'refuse changed', changes, {}, unseen] as const,
  ]),
  ['abandon', 'written far in the future', 'close', future, {}, seen],
  ['abandon', 'written a little ahead', 'refuse changed', { updatedAt: NOW + CLOCK_SKEW }, {}, seen],
  ['abandon', 'open, decided by a clock that went back', 'refuse changed', {}, {}, { decidedAt: NOW + 1 }],
  ['abandon', 'written before a decision of this moment', 'close', {}, {}, { decidedAt: NOW }],
  ['abandon', 'busy', 'refuse busy', busy],
  ...[{}, stale].flatMap((changes) => [
    ...[-1, 1].flatMap((sign) =>
      (
        [
          [CLOCK_ERROR + MINUTE, 'refuse busy'],
          [CLOCK_ERROR + MINUTE + 1, 'close'],
        ] as const
      ).map(([age, step]) => {
        const updatedAt = NOW + sign * age
        const lease = { updatedAt, busyUntil: updatedAt + MINUTE }
        return [
          'abandon',
          `${age} ms ${sign < 0 ? 'old' : 'ahead'}, with a lease of a minute`,
          step,
          { ...changes, ...lease },
          {},
          { decidedAt: NOW, outwaited: true },
        ] as const
      }),
    ),
    [
      'abandon',
      'overtaken from a call',
      'refuse busy',
      { ...changes, othersUntil: NOW - 1 },
      {},
      seen,
    ] as const,
    [
      'abandon',
      'overtaken from a call that is over',
      'close',
      { ...changes, updatedAt: NOW - 7 * MINUTE - 1, othersUntil: NOW - 5 * MINUTE - 1 },
      {},
      seen,
    ] as const,
  ]),
  ['abandon', 'created', 'refuse created', created],
  ['abandon', 'created, and asked for in this process', 'refuse busy', created, {}, live],
  ['abandon', 'unreadable', 'refuse created', unreadable],
  ['abandon', 'refused', 'tell', refused()],
  ['abandon', 'refused, and asked for again in this process', 'refuse busy', refused(), {}, live],

  ...[{}, stale, busy, unreadable, rejected('conflict')].map(
    (changes) => ['forget', JSON.stringify(changes), 'refuse unsettled', changes] as const,
  ),
  ['forget', 'created', 'empty', created],
  ['forget', 'created, and asked for in this process', 'refuse unsettled', created, {}, live],
  ['forget', 'refused', 'empty', refused()],
  ['forget', 'refused, and asked for again in this process', 'refuse unsettled', refused(), {}, live],
]

const MORE_NAMED: readonly Line[] = [
  ['busy, and outwaited', 'send stored', busy, {}, { outwaited: true }],
  ['busy under another key', 'refuse key', busy, key],
  ['open, its row damaged', 'refuse corrupt', {}, {}, notGenuine],
  ['past the window, another payload', 'refuse payload', stale, payload],
  ['past the window under another key', 'refuse key', stale, key],
  ['unreadable, another payload', 'refuse payload', unreadable, payload],
  ['unreadable under another key', 'refuse key', unreadable, key],
  ['unreadable, its row damaged', 'refuse corrupt', unreadable, {}, notGenuine],
  ['refused, its row damaged', 'refuse corrupt', refused(), {}, notGenuine],
  ['refused, its row damaged, another key is given', 'refuse key', refused(), key, notGenuine],
]

const next = { asked: 'key-before' }
const MORE_ANONYMOUS: readonly Line[] = [
  ['open, the next one after the order that is asked for again', 'refuse replaced', {}, {}, next],
  ['busy, the next one after the order that is asked for again', 'refuse replaced', busy, {}, next],
  ['past the window, the next one after it', 'refuse replaced', stale, {}, next],
  ['created, the next one after it', 'refuse replaced', created, {}, next],
  ['created but unreadable, the next one after it', 'refuse replaced', unreadable, {}, next],
  ['refused, the next one after it', 'refuse replaced', refused(), {}, next],
  ['created by the call that was in doubt when this one began', 'tell', created, {}, { asked: 'key-0' }],
  ['refused, its row damaged', 'send new', refused(), {}, notGenuine],
  ['created but unreadable, being read by a live call', 'wait', { ...unreadable, ...busy }],
]

/** No record exists. */
const UNKNOWN: readonly (readonly [Command, ...Line])[] = [
  ['create', 'not remembered', 'send new'],
  ['recover', 'not remembered', 'nothing'],
  ['resolve', 'not remembered', 'verify'],
  ['abandon', 'not remembered', 'refuse unknown'],
  ['forget', 'not remembered', 'nothing'],
]

/** One line. `said` is the step that the rules give, in words. */
export interface RuleLine {
  readonly title: string
  readonly expected: string
  said(): string
}

const lineOf = (
  command: Command,
  slot: string,
  [when, expected, found, wanted, at]: Line,
  remembered = true,
): RuleLine => ({
  title: `${command} of an order${slot.startsWith('anon:') ? ' without a name' : ''} that is ${when}: ${expected}`,
  expected,
  said: () => {
    const wish = { slot, fingerprint: 'same', ...wanted }
    const stored = remembered ? { record: record({ slot, ...found }) } : {}
    return Object.values(decide(command, stored, { ...here, wanted: wish, ...at })).join(' ')
  },
})

export const LINES: readonly RuleLine[] = [
  ...[...NAMED, ...MORE_NAMED].map((line) => lineOf('create', 'ref:r1', line)),
  ...[...ANONYMOUS, ...MORE_ANONYMOUS].map(([when, expected, found, wanted, at]) =>
    lineOf('create', 'anon:same', [when, expected, { ...random, ...found }, wanted, at]),
  ),
  ...RECOVERED.map((line) => lineOf('recover', 'ref:r1', line)),
  ...BY_A_PERSON.map(([command, ...line]) => lineOf(command, 'ref:r1', line)),
  ...UNKNOWN.map(([command, ...line]) => lineOf(command, 'ref:r1', line, false)),
]
