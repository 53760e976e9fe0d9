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

it.each(STORES)('$name refuses an option that it does not know, and an address', (Store) => {
  const open = (options: unknown) => () => Reflect.construct(Store, [options])
  expect(open({ tabel: 'orders_eu' })).toThrow(StoreError)
  expect(open({ tabel: 'orders_eu' })).toThrow(
    /^\w+Store takes an object with the options \w+.*, not `tabel`\.$/,
  )
  expect(open('postgres://ada:secret@db')).toThrow(/, not a string\.$/)
})
