import { storeContract } from 'customer-ordering-sdk/stores/contract'
import { describe, it } from 'vitest'
import { effort } from '../../support/effort.ts'
import { describeWith } from '../support/services.ts'
import type { Place } from './platform.ts'
import { runningWorkerd } from './workerd.ts'

describeWith('clients', 'stores in workerd', () => {
  const running = runningWorkerd()

  describe.each([
    ['D1Store', 'd1'],
    ['DurableObjectStore', 'object'],
  ] as const)('%s', (_, store) => {
    let tests = 0
    let handles = 0
    const place = (): Place => ({ store, name: `test-${tests}` })
    const open = (worker: 'one' | 'two') => running().open(place(), `handle-${++handles}`, worker)
    storeContract({
      test: { describe, it },
      createStore: () => {
        tests++
        return open('one')
      },
      // An object runs once, so its second store shares the isolate. Workers do not.
      openSecond: () => open('two'),
      reopenStore: async () => {
        const workerd = running()
        if (store === 'object') await workerd.perform(place(), { task: 'abort' }).catch(() => {})
        return open('one')
      },
      removeStore: async () => {
        if (store === 'd1')
          for (const table of ['rows', 'schema'])
            await running().perform(place(), {
              task: 'sql',
              sql: `DROP TABLE IF EXISTS customer_ordering_${table}`,
            })
      },
      maxBytes: 1_900_000,
      history: { clients: 8, operations: effort(60, 200) },
    })
  })
})
