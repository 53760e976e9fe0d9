/**
 * Walks every state of two processes with one order, within the bounds of each setting, with the
 * real rules and transitions. `npm run test:all` adds pairs of wide calls and every wrong
 * neighbour, `npm run verify model` the other wide settings.
 */

import { describe, expect, it } from 'vitest'
import { effort, FULL, sample } from '../../support/effort.ts'
import type { RecordEvent } from './core.ts'
import { ENTRIES, NEIGHBOURS, noticed, unused } from './coverage.ts'
import { type Found, search } from './search.ts'
import { SETTINGS } from './settings.ts'

/** Maximum new states of a setting, and of a wrong neighbour. */
const BOUND = effort(20_000, 40_000)
const FROM_A_NEIGHBOUR = effort(5_000, 20_000)

const THREE_CALLS =
  'takes three calls for an order without a name: one asks for it again, one settles it, one takes its row over'

/** Entries that no state uses, with the reason to keep them. */
const UNUSED: Readonly<Record<string, string>> = {
  'busy × create, replaced: refuse replaced': THREE_CALLS,
  'open × create, replaced: refuse replaced': THREE_CALLS,
  'stale × create, replaced: refuse replaced': THREE_CALLS,
  'stale × abandon, overtaken: refuse busy':
    'takes a call that begins just before the window ends, and whose claim another call takes over and releases',
  'created × create, replaced: refuse replaced': THREE_CALLS,
  'unread × create, replaced: refuse replaced': THREE_CALLS,
  'unread × recover, bodyGone: look_up unreadable':
    'no call stores such a row, but rows come from outside: without a body there is nothing to repeat',
  'rejected × create, replaced: refuse replaced': THREE_CALLS,
}

const EVENTS: Readonly<Record<RecordEvent['type'], true>> = {
  asked: true,
  resumed: true,
  claimed: true,
  tagged: true,
  refused: true,
  moved_on: true,
  went_back: true,
  closed: true,
  left_open: true,
  proven: true,
  distrusted: true,
  rewritten: true,
  abandoned: true,
}

const small = SETTINGS.filter(({ wide }) => wide !== true)
const pairs = SETTINGS.filter(({ name }) => name.startsWith('two at the same time, '))
const searches: Found[] = []

describe('two processes over one order', () => {
  it.each(FULL ? [...small, ...pairs] : small)(
    'two processes keep every promise in each state: $name',
    (setting) => {
      const found = search(setting, BOUND)
      if (setting.wide !== true) {
        searches.push(found)
        expect(found.whole, `${setting.name} has more than ${BOUND} states`).toBe(true)
      }
      expect(found.broken).toBeUndefined()
    },
  )
})

describe('the rules of orders', () => {
  it('every rule is used in some state, except those that explain why they exist', () => {
    const states = searches.reduce((sum, found) => sum + found.states, 0)
    console.log(`${searches.length} settings, ${states} states, ${ENTRIES.length} entries of the rules`)
    expect(unused(searches)).toEqual(Object.keys(UNUSED))
  })

  it('a rule changed to a wrong neighbour is detected by a promise or by its table', () => {
    const chosen = sample(NEIGHBOURS, 8)
    const judged = chosen.map((neighbour) => ({
      neighbour,
      by: noticed(neighbour, searches, FROM_A_NEIGHBOUR),
    }))
    const promises = judged.filter(({ by }) => by.promise !== undefined).length
    console.log(`${chosen.length} wrong neighbours, ${promises} of which break a promise in some state`)
    expect(judged.filter(({ by }) => by.line === undefined).map(({ neighbour }) => neighbour.name)).toEqual(
      [],
    )
    expect(promises).toBeGreaterThan(chosen.length / 4)
  })
})

describe('the events of a record', () => {
  it('every event of a record happens in some state', () => {
    const happened = new Set(searches.flatMap(({ events }) => [...events]))
    expect([...happened].sort()).toEqual(Object.keys(EVENTS).sort())
  })
})
