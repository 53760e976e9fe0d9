import { type RedisClient, RedisStore } from 'customer-ordering-sdk/stores/redis'
import { describe, expect, it } from 'vitest'
import type { StoreError } from '../../../src/errors/classes.ts'
import { makeRow, SCOPE } from '../../../src/stores/contract/rows.ts'
import { callsOf, expectFailure, expectFailures, failureOf } from '../support/failures.ts'

/** The INFO of a server with the required settings. */
const INFO = 'role:master\r\naof_enabled:1\r\nmaxmemory_policy:noeviction\r\ncluster_enabled:0\r\n'

/** A store whose client responds to INFO with one text, and otherwise with a reply or an error. */
function answering(reply: unknown, info: string | Error = INFO, options: object = {}): RedisStore {
  const settle = async (value: unknown): Promise<unknown> => {
    if (value instanceof Error) throw value
    return value
  }
  let calls = 0
  const client: RedisClient = {
    evalSha: () => settle(calls++ === 0 ? (info instanceof Error ? info : [info]) : reply),
    eval: () => settle(new Error('not expected')),
  }
  return new RedisStore({ client, ...options })
}

/** The reason of a rejected call when the client fails. */
const failureWith = (error: Error): Promise<StoreError> =>
  failureOf(() => answering(error).insert(makeRow(1)))

class SocketClosedUnexpectedlyError extends Error {}

it.each([[undefined], [null], [{}], ['redis://:secret@host'], [{ query: () => {} }], [{ eval: () => {} }]])(
  'RedisStore rejects the client %j',
  async (client) => {
    const error = await failureOf(() => new RedisStore({ client: client as RedisClient }))
    expect(error.message).toContain('must be a client of node-redis (the package `redis`) or of ioredis')
    expect(error.message).not.toContain('secret')
  },
)

it.each(['{a}', 'a{', '}', '\ud800', 5])('RedisStore rejects the prefix %j', async (prefix) => {
  await failureOf(() => answering([], INFO, { prefix }))
})

it.each(['persistence', 'eviction'])('RedisStore rejects an unknown value of `%s`', async (name) => {
  const error = await failureOf(() => answering([], INFO, { [name]: 'off' }))
  expect(error.message).toBe(`The option \`${name}\` of RedisStore must be 'check' or 'assume'.`)
})

describe('the inspection of the server', () => {
  const open = (info: Error, options?: object) => answering([], info, options).get(SCOPE, 'id')

  it.each([
    ["ERR ACL failure in script: User shop has no permissions to run the 'info' command"],
    ["ERR The user executing the script can't run this command or subcommand"],
  ])('the errors name both overrides, one after the other, if INFO fails with %s', async (text) => {
    const refused = new Error(text)
    await expectFailure(() => open(refused), "`persistence: 'assume'`")
    await expectFailure(() => open(refused, { persistence: 'assume' }), "`eviction: 'assume'`")
  })

  it('the store does not call INFO if both overrides are set', async () => {
    const store = answering([], 'never', { persistence: 'assume', eviction: 'assume' })
    await expectFailure(() => store.insert(makeRow(1)), 'contains a row that it did not write')
  })

  it('the error reports the state of a server that cannot be inspected yet', async () => {
    const loading = new Error('LOADING Redis is loading the dataset in memory')
    await expectFailure(() => open(loading), 'still loading its data. Try again.')
  })
})

it.each([
  [
    "ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.",
    'OOM',
    /memory is full\. .*Nothing was written\.$/,
  ],
  ["READONLY You can't write against a read only replica.", 'READONLY', /Connect the client to the primary/],
  ['LOADING Redis is loading the dataset', 'LOADING', /Try again\. This attempt wrote nothing\.$/],
  ['MISCONF Errors writing to the AOF file: No space left', 'MISCONF', /cannot write to its disk/],
  ['MOVED 3999 10.0.0.7:6381', 'MOVED', /Pass a cluster client\. This attempt wrote nothing\.$/],
  [
    'ERR Script attempted to access a non local key in a cluster node script: 1f2e, on @user_script:8.',
    'TRYAGAIN',
    /moving the slot.* may or may not have happened\.$/,
  ],
  [
    'Too many Cluster redirections. Last error: ReplyError: MOVED 3999 10.0.0.7:6381',
    'MaxCommandRedirectionsError',
    /Try again when the cluster has settled/,
  ],
  ['ERR unknown command `EVALSHA`, with args: `secret`', 'ERR', /the database client reported ERR\./],
  ['Connection is closed.', 'CONNECTION_CLOSED', /the client is not connected/],
  ['Command timed out', 'COMMAND_TIMEOUT', /did not respond in time/],
  [
    'connect secret',
    'Error',
    /the database client reported Error\. .* The write may or may not have happened\.$/,
  ],
])('the error "%s" is reported with the code %s', async (text, code, message) => {
  const error = await failureWith(Object.assign(new Error(text), { command: { args: ['secret'] } }))
  expect(error.message).toMatch(/^Cannot write to the order store in Redis: /)
  expect(error.message).toMatch(message)
  expect(error.message).not.toMatch(/secret|10\.0\.0\.7/)
  expect(error.cause).toMatchObject({ message: code, code })
  expect(Object.keys(error.cause as Error).sort()).toEqual(['code', 'name'])
})

it('only errors of writes mention a write', async () => {
  const reason = /^Cannot read from the order store in Redis: .* that you connected the client\.$/
  const store = answering(new Error('Connection is closed.'))
  await expectFailure(() => store.get(SCOPE, 'id'), reason)
})

it('the cause has the code of the network error, or the name of its class', async () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED 10.0.0.7'), { code: 'ECONNREFUSED' })
  expect((await failureWith(refused)).cause).toMatchObject({ code: 'ECONNREFUSED' })
  const closed = await failureWith(new SocketClosedUnexpectedlyError('Socket closed unexpectedly'))
  expect(closed.cause).toMatchObject({ code: 'SocketClosedUnexpectedlyError' })
  expect(closed.message).toContain('the client is not connected')
})

it.each([['QUEUED'], [null], [7], [[1]], [[null]], [{ 0: 'written', length: 1 }]])(
  'the store rejects the reply %j, which no script returns',
  async (reply) => {
    const insert = () => answering(reply).insert(makeRow(1))
    await expectFailure(insert, 'something that is not the result of a script')
  },
)

it('the store rejects a row that another program or a newer version wrote', async () => {
  for (const text of ['', 'their own', `2 1 1 open 1 1 w\n{}`, `1 1 1 other 1 1 w\n{}`])
    await expectFailure(() => answering([text]).get(SCOPE, 'id'), 'contains a row that it did not write')
})

it('the store rejects bytes that are not UTF-8', async () => {
  await failureOf(() => answering([Uint8Array.of(0x31, 0xff)]).get(SCOPE, 'id'))
})

it('the store rejects times that the index cannot sort', async () => {
  for (const updatedAt of [-1, 0.5, Number.NaN, 2 ** 53]) {
    const call = () => answering(['written']).insert(makeRow(1, { updatedAt }))
    await expectFailure(call, 'must be a whole number of milliseconds')
  }
})

it('the store rejects a cursor that it did not create', async () => {
  await failureOf(() => answering(['']).list(SCOPE, { limit: 1, after: 'page 2' }))
})

it('the store rejects every call after close', async () => {
  const store = answering([])
  await store.close()
  await expectFailures(callsOf(store), 'was closed. Create a new RedisStore.')
})
