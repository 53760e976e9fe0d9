import { expect, it } from 'vitest'
import { Journal } from '../../../../src/orders/record/journal.ts'
import { MemoryStore } from '../../../../src/stores/memory.ts'
import type { OrderStore } from '../../../../src/stores/store.ts'
import { OWNER } from '../../../support/order-context.ts'
import { fakeRuntime } from '../../../support/runtime.ts'

const journal = (store: OrderStore, scope = 's'): Journal =>
  new Journal({ store, scope, ...OWNER, codec: undefined, runtime: fakeRuntime() })

it('clients of one store and scope see the same live calls, and others do not', () => {
  const store = new MemoryStore()
  journal(store).live.set('id', Promise.resolve())
  expect(journal(store).live.has('id')).toBe(true)
  expect(journal(store).live.has('other')).toBe(false)
  expect(journal(store, 't').live.has('id')).toBe(false)
  expect(journal(new MemoryStore()).live.has('id')).toBe(false)
})
