import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '../../scripts/ensure-built.ts'
import { readPages } from './support/pages.ts'

/** The tests of each finding: their files below `test`, and parts of their titles. */
const TESTS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  1: {
    'server/unsent.test.ts': [
      'an order whose response is lost together with its route is charged once, also if it was enqueued',
    ],
  },
  2: {
    'client/create/generations.test.ts': [
      'is charged once where it was refused twice, then bought, and its store was lost',
      'is charged once where another store without its history is asked for another quantity',
    ],
    'client/create/conflicts.test.ts': [
      'keeps its key where another process with a store of its own may have bought under it',
    ],
  },
  3: {
    'client/create/changed-arguments.test.ts': [
      'do not keep a remembered order from being returned: the service has other limits',
      'do not keep an order in doubt from being settled: the service has other limits',
      'say of an order that is %s what is remembered: a row that is no longer valid',
    ],
  },
  4: {
    'proxy/client.test.ts': [
      'never repeats an order in doubt with another API key: lost on the way to the %s, then %s()',
      'never repeats it within one call either',
    ],
  },
  5: {
    'client/recover/recover.test.ts': [
      'never lets %s open the window of its key again, once it was set right',
    ],
  },
  6: {
    'client/create/generations.test.ts': [
      'is not repeated by recovery when its key was first sent too long ago, although it was refused then',
      'begins with a key that was never sent once the window of its first is over, and repeats that one',
    ],
  },
  7: {
    'server/sleep.test.ts': [
      'sends nothing over the new connection, says so, and orders once when it is asked again',
      'sends nothing over a connection that it kept',
    ],
  },
  8: {
    'client/recover/contradictions.test.ts': [
      'is not adopted by recover() if its %s differs',
      'is refused by resolve() if its %s differs',
      'is neither adopted nor bought once more if only its target differs, which a service may spell in its own way',
    ],
    'client/recover/restored.test.ts': ['is narrowed to the source system that the request names'],
  },
  9: {
    'client/recover/contradictions.test.ts': [
      'is replayed under the same key until the own order comes, for one charge',
      'is never returned and never remembered, and its error says that nobody knows of the money',
      'is not `matched` by reconcile() if its %s differs, also under a remembered id',
    ],
  },
  10: {
    'client/create/conflicts.test.ts': [
      'stays listed, is never removed, and is not bought again under its reference',
    ],
  },
  11: {
    'client/recover/pruning.test.ts': [
      'are kept although the clock of one client is 401 days ahead, however often it starts again',
    ],
  },
  12: {
    'client/create/create-many.test.ts': ['is told to end, and not waited for, after %s'],
  },
  13: {
    'stores/sqlite.test.ts': [
      'the store acknowledges no write after its file was %s',
      'create() sends no request after the database file was deleted',
    ],
  },
  14: {
    'client/lists/paging.test.ts': [
      'a page of bad rows costs the check of one: nothing is checked behind the first',
    ],
  },
  15: {
    'client/recover/restored.test.ts': [
      'is told with the order that was not found in it, to the caller and to the logger',
      'is not read again for the same order within a quarter of an hour, by any client of the store',
    ],
  },
  16: {
    'client/recover/reconcile.test.ts': [
      'since a time calls no older order `only_remote` that the store knows, by id or by reference',
    ],
  },
  17: {
    'stores/sqlite.test.ts': ['a new order is reported as not charged, with certainty, if the file %s'],
    'stores/postgres/store.test.ts': [
      'a new order is reported as not charged, with certainty, if the database %s',
    ],
    'stores/redis/server.test.ts': [
      'if the server has %s %s, a new order is not charged, and no request is sent',
    ],
  },
  18: {
    'client/create/mistakes-of-callers.test.ts': ['is refused before anything is sent: %s'],
    'unit/orders/intent.test.ts': [
      'is refused for a key or metadata that were meant and are undefined, if it has no other name',
    ],
  },
  19: {
    'client/setup/request.test.ts': ['refuses the path %j before anything is sent'],
  },
  20: {
    'client/lists/reads.test.ts': ['is read again by %s'],
    'unit/http/transport.test.ts': ['is called as ever where every object inherits a property %s'],
  },
  21: {
    'client/create/claims.test.ts': [
      'is waited for 15 s and no more, then the order is claimed (charged: %s)',
      'is told to the hooks and to the logger when the wait begins, once',
    ],
  },
  22: {
    'stores/redis/server.test.ts': [
      'the store inspects the server again after a reconnect, through %s',
      'the store inspects the server again every hour',
    ],
  },
  23: {
    'sandbox/yaml.test.ts': ['with very many spaces %s are read in a moment'],
  },
  a: {
    'browser/suites.test.ts': ['believes no response to a read that the browser may keep, $what'],
    'unit/http/transport.test.ts': [
      '%s is sent with `cache: no-store`, because a cached list is no evidence',
    ],
  },
  b: {
    'browser/suites.test.ts': ['charges once where $status after the charge $what, and doubts what it may'],
  },
  c: {
    'unit/settings/resolve.test.ts': [
      'requires server in a page whose own origin is the address and whose store outlives it',
    ],
  },
  d: {
    'browser/faults.test.ts': [
      'gives no more room at all, has not bought an order that could not be written down, and says so',
      'lets another page keep a transaction open, rejects in time, writes nothing later, and goes on when that has ended',
    ],
  },
  e: {
    'client/recover/restored.test.ts': [
      'is found by recover() at the service where a restored backup has forgotten that it was bought',
      'is found by create() at the service where a restored backup has forgotten that it was bought',
    ],
  },
  f: {
    'stores/sqlite.test.ts': ['the store rejects a table that %s, and does not change it'],
    'stores/postgres/store.test.ts': [
      'the store rejects tables with %s, and does not change them',
      'the store writes no order after its table lost its primary key',
    ],
  },
  g: {
    'stores/postgres/store.test.ts': [
      'a failover loses no acknowledged row, even if the role sets synchronous_commit = %s',
    ],
  },
  h: {
    'stores/sqlite.test.ts': [
      'the store rejects a database in UTF-16, whose rows it could never read, and does not change it',
    ],
  },
  i: {
    'client/create/store-faults.test.ts': ['that %s is found out before anything is sent'],
  },
  j: {
    'stores/sqlite.test.ts': [
      'a new file behind a dangling symbolic link is readable and writable only by the owner',
      'writes reject while the journal mode is %s, and succeed when it is changed back',
    ],
  },
  k: {
    'stores/support/newer-version.ts': ['this version does not change the tables after an update of %s'],
    'stores/sqlite.test.ts': ['after the update, this version stores no order and sends none'],
  },
  l: {
    'stores/broken-stores.test.ts': [
      'another insert does not overwrite a row that was inserted again after a prune',
      "listOpen and list reach every row of a large scope with the client's limit",
      'ids are compared exactly: case, whitespace and accents distinguish rows',
    ],
  },
}

const text = readPages().find(({ path }) => path === 'docs/verification.md')?.text ?? ''
const rows = [...text.matchAll(/^\| \*\*(\w+)\*\* \| .+? \| (.+?) \|/gm)]

/** Files that the table names for a finding, in any of its rows. */
function filesOf(finding: string): readonly string[] {
  return rows
    .filter(([, name]) => name === finding)
    .flatMap(([, , files = '']) => [...files.matchAll(/`test\/([\w./-]+)`/g)].map(([, path = '']) => path))
}

test('the table of findings has every number and letter of the review', () => {
  expect(new Set(rows.map(([, finding]) => finding))).toEqual(new Set(Object.keys(TESTS)))
})

test.each(Object.entries(TESTS))(
  'finding %s has its tests in the files that the table names',
  (finding, tests) => {
    expect(new Set(filesOf(finding))).toEqual(new Set(Object.keys(tests)))
    const missing = Object.entries(tests).flatMap(([path, titles]) => {
      const source = readFileSync(join(root, 'test', path), 'utf8').replaceAll("\\'", "'")
      return titles.filter((title) => !source.includes(title))
    })
    expect(missing).toEqual([])
  },
)
