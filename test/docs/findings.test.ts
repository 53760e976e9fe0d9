import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '../../tools/build/ensure-built.ts'
import { readPages } from './support/pages.ts'

/** For each finding: parts of the titles of its tests, which the files in the table have. */
const TITLES = `
1
  an order whose response is lost together with its route is charged once
2
  an order that was refused twice, then bought, is charged once even if its store was lost
  an order is charged once if a store without its history requests another quantity
  a conflict keeps its key if another process with its own store may have bought with it
3
  an order that is %s is reported as remembered, even if its record is no longer valid
4
  an order in doubt is never repeated with another API key: lost on the way to the %s, then %s()
  an order in doubt is never repeated with another API key %s
5
  after a clock that was ahead is corrected, %s never reopens the window of the key
6
  recovery does not repeat a refused order whose key was first sent too long ago
  after the window of its first key, a refused order starts with an unsent key, and repeats that key
7
  after a sleep, the transport sends nothing over a new connection, and the next call orders once
  after a sleep, the transport sends nothing over a kept connection
8
  another integration's order whose %s differs is shown to a person, neither adopted nor bought
  the look-up of an order is filtered by the source system of its request
9
  a response with another order is replayed with the same key until the right order comes, for one charge
  another order is never returned or remembered, and the error reports an unknown charge
  a remembered id proves nothing if the list shows another reference
10
  a conflict stays listed, is never removed, and is not bought again with its reference
11
  old records are kept even if one client's clock is 401 days ahead and it restarts repeatedly
12
  createMany tells a waiting source to end, and does not wait for it, after %s
13
  every call rejects after the file was %s
  create() sends no request after the database file was deleted
14
  a page of bad rows is rejected at the first bad row, and later rows are not checked
15
  caller and logger are told that the list was too long to find the order
  a list that is too long is not read again for the same order within 15 minutes, by any client
16
  reconcile() since a time does not report an older known order as only_remote
17
  a new order is reported as not charged, with certainty, if the file %s
  a new order is reported as not charged, with certainty, if the database is at its limit of time
  if the server has %s %s, \`charged\` of a new order is %s, and no request is sent
18
  an order whose name is missing is rejected before anything is sent: %s
  an undefined key or metadata is rejected if the order has no other name
19
  client.request names the wrong %s of %o, and sends nothing
20
  JSON that ends too early, in a body that ends as if it were whole, is requested again
  a caller's fetch is called as usual if every object inherits a property %s
21
  a call waits 15 s at most for another claim, then claims the order (charged: %s)
  hooks and logger are told once when the wait for another claim begins
22
  the store inspects the server again after a reconnect, through %s
  the store inspects the server again every hour
25
  a file with a second hard link is rejected and not changed
  a file mounted without its directory is rejected and not changed
26
  an order cannot be abandoned while a call may send it whose claim %s took over
27
  a charged order is reported as charged if its invalid request names it by %s
29
  allowDuplicate gives the order its own name, which finds it again
a
  no response to a read comes from the browser's cache, $what
  %s is sent with the cache mode %s, because a cached list is no evidence
b
  an order is charged once if $status after the charge $what, and is reported as in doubt
c
  server is required in a page whose own origin is the address and whose store outlives it
d
  with no quota at all, an order that could not be stored is not bought, and the error states it
  if another page holds a transaction, a write rejects in time, has no late effect, and later succeeds
f
  the store rejects a table that %s, and does not change it
  the store rejects tables with %s, and does not change them
  the store writes no order after its table lost its primary key
g
  a failover loses no acknowledged row, even if the role sets synchronous_commit = %s
h
  the store rejects a database in UTF-16, whose rows it could never read, and does not change it
i
  a codec that %s is detected before anything is sent
j
  a new file behind a dangling symbolic link
  %s is readable and writable only by the owner
k
  this version does not change the tables after an update of %s
  after the update, this version stores no order and sends none
l
  another insert does not overwrite a row that was inserted again after a prune
  listOpen and list reach every row of a large scope with the client's limit
  ids are compared exactly: case, whitespace and accents distinguish rows
29_1
  a service that forgets a key after the window charges once, though a second call has a clock %s
29_7
  nothing is kept of a body that is too large, nor is memory taken for it
  the proxy forwards %s %s, and tells authorize which call that is
  the proxy does not forward %s %s
  the proxy rejects %s because of a query parameter that the API document does not show
  the proxy rejects a body that is larger than its limit, also without a declared length
29_10
  begins or ends with white space or an invisible character, and so differs from one that looks the same
  a request of %i bytes as JSON is rejected with %j
29_14
  the order is looked up, also by a client with another fetch, once its key may be forgotten
  another refusal does not restart the window of the key
  a key that may have bought behind a refusal is kept if it belongs to another payload
  a service worker that controls the page may repeat a request
30_1
  the order is looked up, also by a client with another fetch, once its key may be forgotten
30_2
  an invalid or aborted call does not report an order as uncharged while another call places it: %s
  a list with %s does not permit a new key
30_3
  recovery does not report a nameless order that is settled meanwhile as uncharged
30_4
  %s: a call ends within a second of its signal, even if the store hangs
  %s: recover() ends within a second of its signal, even if the store hangs
29_11
  every account label of the docs and examples begins with a domain, as the docs advise
29_9
  the command escapes what nobody sees in a store, in tables and in JSON
  unresolved --store postgres://ada:100%secret@127.0.0.1/x --account shop
  the command uses the driver of the user's project, whose error repeats %s
  a write of %s whose wait for the standby was cancelled is in doubt
  a client that does not show warnings may not write while the server waits for standbys
  a read bypasses the cache of the caller's dispatcher
  a lookup does not believe a list that comes from a cache
29_3
  a subclass of Node's own Agent with the same name proves nothing
  a patched method on prototype %i of Node's own Agent proves nothing
  a global dispatcher %s proves nothing
  the matrix runs on this version without unhandled rejections
  an interceptor of the application's own global dispatcher may have sent an order before it failed
29_12
  an order that AbortSignal.timeout() ended is a timeout, and recover() places it
29_15
  an error by which Next.js steers the rendering passes unchanged through a read
29_2
  a connection of $what that was released after BEGIN takes no acknowledged row with it ($version)
  a connection that was released after BEGIN takes no acknowledged row with it
  every acknowledged row survives a crash of the server under load
29_13
  every call rejects after the file was %s
  a write that finds its file replaced afterwards may have happened
  what a replica does not contain proves nothing, even if the store checks nothing, through %s
  what row-level security hides from %s is not taken for absent
  the store rejects a standby, and a primary that becomes one, whatever rows it lacks
29_4
  another integration's order whose %s differs is shown to a person, neither adopted nor bought
  a remembered id proves an order whose fields the service changes, listed with %s
  recover() calls it doubtful, also if its orders name several source systems
  resolve() names every field that differs, and accepts the order despite exactly these
29_5
  resolve() costs one GET and a handful of store calls, however many orders are remembered
  resolve() adopts an order that this store did not place, so that it is never bought again
29_6
  an order cannot be abandoned while a call may run under a clock that is wrong by five minutes
29_8
  an index keeps at most 64 bytes a record
  reconcile() of %i records runs in a heap of %i MB
32_3
  %i open orders at 50 ms each are settled in parallel: %j
29_16
  a settled order takes at most 400 bytes
  the store warns once when it remembers 100,000 orders
`

const TESTS = new Map(
  [...TITLES.matchAll(/^(\w+)\n((?: {2}.+\n)+)/gm)].map(([, finding = '', titles = '']) => [
    finding,
    titles.trim().split('\n  '),
  ]),
)

const text = readPages().find(({ path }) => path === 'docs/verification.md')?.text ?? ''
const rows = [...text.matchAll(/^\| \*\*(\w+)\*\* \| .+? \| (.+?) \|/gm)]

/** The files that the table names for a finding, in any row. */
function filesOf(finding: string): readonly string[] {
  return rows
    .filter(([, name]) => name === finding)
    .flatMap(([, , files = '']) => [...files.matchAll(/`test\/([\w./-]+)`/g)].map(([, path = '']) => path))
}

test('the table of findings has every number and letter of the review', () => {
  expect(new Set(rows.map(([, finding]) => finding))).toEqual(new Set(TESTS.keys()))
})

test.each([...TESTS])('finding %s has its tests in the files that the table names', (finding, titles) => {
  const sources = filesOf(finding).map((path) =>
    readFileSync(join(root, 'test', path), 'utf8').replaceAll("\\'", "'"),
  )
  expect(titles.filter((title) => !sources.some((source) => source.includes(title)))).toEqual([])
  expect(sources.filter((source) => !titles.some((title) => source.includes(title)))).toEqual([])
})
