import { describe, expect, it } from 'vitest'
import { RequestAbortedError } from '../../../../src/errors/classes.ts'
import { sentOutcome, unreadableRecord } from '../../../../src/orders/commands/recovery-outcome.ts'
import type { OutcomeKind } from '../../../../src/orders/protocol/outcome.ts'
import { LEFT_OPEN, orderContext, remember } from '../../../support/order-context.ts'
import { ORDER } from '../../../support/place.ts'
import { type Changes, record } from '../protocol/found.ts'

describe('a row that cannot be read', () => {
  it('an unreadable row is shown with its own fields, as in doubt', async () => {
    const { row } = await remember(orderContext(), LEFT_OPEN)
    expect(unreadableRecord(row)).toEqual({
      slot: `row:${row.id}`,
      key: '',
      generation: 0,
      state: 'open',
      ambiguous: true,
      attempts: 0,
      createdAt: row.createdAt,
      version: 1,
    })
  })
})

describe('the outcome of an order that recovery has sent', () => {
  it.each<[string, Changes, OutcomeKind | undefined]>([
    ['created', { state: 'created', order: ORDER }, 'connection_lost'],
    ['created unreadable', { state: 'created', order: { id: 'o1' } }, 'created_flawed'],
    ['rejected', { state: 'rejected', rejection: { kind: 'refused' } }, 'refused'],
    ['in_progress', {}, 'in_progress'],
    ['needs_attention refused_after_doubt', {}, 'refused'],
    ['needs_attention refused_after_doubt', {}, 'refused_unprocessed'],
    ['needs_attention conflict', {}, 'conflict'],
    ['still_open', {}, 'aborted'],
    ['still_open', {}, 'server_error'],
    ['still_open', {}, 'unauthorized'],
    ['still_open', {}, undefined],
  ])('the outcome is %s for %j after %s', (expected, changes, kind) => {
    const error = new RequestAbortedError('no', {})
    const outcome = sentOutcome(record(changes), undefined, kind, error)
    expect([outcome.outcome, outcome.reason].filter(Boolean).join(' ')).toBe(expected)
    expect(outcome.error).toBe(outcome.order === undefined ? error : undefined)
  })
})
