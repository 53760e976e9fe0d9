// Inserts rows, and updates each, into the store at the path given until it is killed; tells the parent each number
// when both writes are acknowledged.

import { makeRow, nextVersion } from '../../../src/stores/contract/rows.ts'
import { SqliteStore } from '../../../src/stores/sqlite.ts'

const store = new SqliteStore({ path: process.argv[2] ?? '' })
for (let number = 0; ; number++) {
  const row = makeRow(number)
  await store.insert(row)
  await store.update(nextVersion(row, { data: 'updated' }), 1)
  // Not waited for: the parent kills this process at any moment.
  process.send?.(number)
  await new Promise((resolve) => setImmediate(resolve))
}
