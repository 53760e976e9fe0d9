import { expect, it } from 'vitest'
import { StoreError } from '../../src/errors/classes.ts'
import { D1Store } from '../../src/stores/d1.ts'
import { DurableObjectStore } from '../../src/stores/durable-object.ts'
import { IndexedDbStore } from '../../src/stores/indexeddb.ts'
import { MysqlStore } from '../../src/stores/mysql.ts'
import { PostgresStore } from '../../src/stores/postgres.ts'
import { RedisStore } from '../../src/stores/redis.ts'
import { SqliteStore } from '../../src/stores/sqlite.ts'

const STORES = [
  D1Store,
  DurableObjectStore,
  IndexedDbStore,
  MysqlStore,
  PostgresStore,
  RedisStore,
  SqliteStore,
]

it.each(STORES)('$name refuses an option that it does not know, instead of using a default', (Store) => {
  const open = () => Reflect.construct(Store, [{ tabel: 'orders_eu' }])
  expect(open).toThrow(StoreError)
  expect(open).toThrow(`The option \`tabel\` of ${Store.name} is not known.`)
})
