import { expect, it } from 'vitest'
import { makeRow } from '../../src/stores/contract/rows.ts'
import { EngineStore } from '../../src/stores/engine.ts'
import { collect, used } from '../support/heap.ts'
import { failureOf } from './support/failures.ts'

it('a store remembers few of the writes that ended in doubt, and then no failure is proof', async () => {
  let code = 'LOST'
  const store = new EngineStore('TestStore', {
    durability: 'server',
    failures: { place: 'a test', troubles: [], notApplied: /^FULL$/, codeOf: () => code },
    run: () => {
      throw new Error(code)
    },
  })
  const write = (id: string) => failureOf(() => store.insert(makeRow(1, { id })))
  const longId = (number: number): string => `${number}`.padStart(2_000, '-')
  await write(longId(0))
  collect()
  const before = used()
  for (let number = 1; number <= 11_000; number++) await write(longId(number))
  collect()
  expect(used() - before).toBeLessThan(5_000_000)
  code = 'FULL'
  expect((await write('another')).applied).toBeUndefined()
})
