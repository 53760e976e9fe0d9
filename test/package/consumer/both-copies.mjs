// Loads the ESM and the CommonJS copy in one process: two classes with the same meaning of
// `instanceof`.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import * as esm from 'customer-ordering-sdk'
import { SqliteStore } from 'customer-ordering-sdk/stores/sqlite'

const require = createRequire(import.meta.url)
const cjs = require('customer-ordering-sdk')
const cjsSqlite = require('customer-ordering-sdk/stores/sqlite')
assert.notEqual(esm.TimeoutError, cjs.TimeoutError, 'the package has one copy; this test would prove nothing')

let classes = 0
for (const [name, errorClass] of Object.entries(esm)) {
  if (!name.endsWith('Error') || typeof errorClass !== 'function' || name === 'isCustomerOrderingError')
    continue
  const one = new errorClass('made by ESM')
  const other = new cjs[name]('made by CommonJS')
  assert(one instanceof cjs[name] && other instanceof errorClass, name)
  assert(one instanceof cjs.CustomerOrderingError && other instanceof esm.CustomerOrderingError, name)
  assert(esm.isCustomerOrderingError(other) && cjs.isCustomerOrderingError(one), name)
  assert.equal(one instanceof cjs.TimeoutError, name === 'TimeoutError', name)
  classes++
}

// Other entry points throw the main entry's errors.
for (const [Store, { StoreError }] of [
  [SqliteStore, cjs],
  [cjsSqlite.SqliteStore, esm],
])
  assert.throws(
    () => new Store({ path: '/nowhere/at/all/orders.db' }),
    (error) => error instanceof StoreError,
  )

console.log(classes)
