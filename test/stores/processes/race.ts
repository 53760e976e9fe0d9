// Races for rows of the store at the path given: inserts each batch of row numbers that the parent sends, and answers
// with those that it won. The file need not exist yet: opening it is part of the race. An empty batch ends it.
import { makeRow } from '../../../src/stores/contract/rows.ts'
import { SqliteStore } from '../../../src/stores/sqlite.ts'

let store: SqliteStore | undefined
process.on('message', async (batch: readonly number[]) => {
  store ??= new SqliteStore({ path: process.argv[2] ?? '', busyTimeout: 60_000 })
  const won: number[] = []
  for (const number of batch) {
    const { inserted } = await store.insert(makeRow(number, { data: String(process.pid) }))
    if (inserted) won.push(number)
  }
  if (batch.length === 0) await store.close()
  process.send?.(won, () => {
    if (batch.length === 0) process.disconnect()
  })
})
process.send?.('ready')
