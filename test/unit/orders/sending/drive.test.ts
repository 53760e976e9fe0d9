import { expect, it } from 'vitest'
import { CLOCK_SKEW } from '../../../../src/http/deadline.ts'
import type { Key } from '../../../../src/orders/protocol/keys.ts'
import { earlierRefusal } from '../../../../src/orders/sending/drive.ts'
import { LEFT_OPEN, NOW } from '../../../support/order-context.ts'
import { type Changes, record } from '../protocol/found.ts'

const SAME: Key = { key: LEFT_OPEN.key, origin: 'derived', generation: 0 }
const FIRST: Key = { ...SAME, key: 'k0' }
const LATER: Key = { ...SAME, key: 'k3', generation: 3 }
const refused: Changes = { state: 'rejected', rejection: { kind: 'refused' } }
const known: Changes = { ...refused, firstRejection: { kind: 'cancelled' } }

it.each<[string | undefined, string, Key, Changes]>([
  ['refused', 'its current key', SAME, refused],
  [undefined, 'a key that it never had', LATER, refused],
  ['cancelled', 'its first key', FIRST, known],
  [undefined, 'a first key whose refusal is unknown', FIRST, refused],
  [undefined, 'a later key', LATER, known],
  ['refused', 'a key that was refused as the call began', SAME, { ...refused, updatedAt: NOW }],
  [undefined, 'a key that was refused during the call', SAME, { ...refused, updatedAt: NOW + 1 }],
  [undefined, 'a key that was refused a little ahead', SAME, { ...refused, updatedAt: NOW + CLOCK_SKEW }],
  ['refused', 'a key refused by a clock ahead', SAME, { ...refused, updatedAt: NOW + CLOCK_SKEW + 1 }],
])('the earlier refusal is %s for %s', (kind, _what, key, changes) => {
  expect(earlierRefusal(record(changes), key, NOW, NOW)?.kind).toBe(kind)
})
