import type { EventEmitter } from 'node:events'
import { inspect } from 'node:util'
import { explainHistory, recordHistory } from 'customer-ordering-sdk/stores/contract'
import { type RedisClient, RedisStore, type RedisStoreOptions } from 'customer-ordering-sdk/stores/redis'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  EVERYTHING,
  insertAll,
  makeRow,
  makeRows,
  mustUpdate,
  nextVersion,
  SCOPE,
  WRITTEN_AT,
  walk,
} from '../../../src/stores/contract/rows.ts'
import type { StoredRow } from '../../../src/stores/store.ts'
import { order } from '../../support/lab.ts'
import { AnswerProxy } from '../support/answer-proxy.ts'
import { expectHistoryThrough } from '../support/disaster.ts'
import { redisServers } from '../support/during.ts'
import {
  callsOf,
  expectFailure,
  expectFailures,
  expectLaggingCopyIsNotBelieved,
  failureOf,
  readsOf,
  shopOver,
} from '../support/failures.ts'
import { RedisServers } from '../support/redis.ts'
import {
  CLIENTS,
  type ClientName,
  type Connection,
  connect,
  type Ioredis,
  type NodeRedis,
  nodeRedis,
} from '../support/redis-clients.ts'
import { expectIndexed } from '../support/redis-indexes.ts'
import { describeWith } from '../support/services.ts'

const CREATED = { open: false, state: 'created' } as const
const REJECTED = { open: false, state: 'rejected' } as const

describeWith('redis', 'RedisStore on a server of its own', () => {
  const servers = redisServers('single', '--appendfsync', 'always')
  const open: (Connection | { close(): unknown })[] = []

  afterEach(async () => {
    for (const { close } of open.splice(0)) await close()
    const limits = ['maxmemory', 0, 'maxmemory-policy', 'noeviction', 'min-replicas-to-write', 0]
    await configure('appendonly', 'yes', 'appendfsync', 'always', ...limits)
    await servers().ask('replicaof', 'no', 'one')
    await servers().ask('acl', 'setuser', 'default', '+info')
    await servers().ask('flushall')
  })

  /** Changes settings of the server until the end of the test. */
  const configure = (...settings: (string | number)[]) => servers().ask('config', 'set', ...settings)

  async function clientOf(name: ClientName, options?: object, port = servers().port): Promise<RedisClient> {
    const connection = await connect(name, [port], { ...options })
    open.push(connection)
    return connection.client
  }

  const storeWith = async (name: ClientName, options?: Omit<RedisStoreOptions, 'client'>) =>
    new RedisStore({ client: await clientOf(name), ...options })

  /** Reads until the server knows the scripts. */
  async function warm(store: RedisStore): Promise<void> {
    for (const id of ['after the scripts', 'were loaded']) await store.get(SCOPE, id)
  }

  async function openProxy(): Promise<AnswerProxy> {
    const proxy = await AnswerProxy.start(servers().port)
    open.push({ close: () => proxy.stop() })
    return proxy
  }

  /** The server's count of a command since the last reset. */
  async function countOf(command: string): Promise<number> {
    const lines = await servers().ask('info', 'commandstats')
    const counted = lines.find((line) => line.startsWith(`cmdstat_${command}:`))
    return Number(/calls=(\d+)/.exec(counted ?? '')?.[1] ?? 0)
  }

  it.each(CLIENTS)('a server without an append-only file is rejected until it has one: %s', async (name) => {
    const store = await storeWith(name)
    await configure('appendonly', 'no')
    for (const call of [() => store.insert(makeRow(1)), () => store.get(SCOPE, makeRow(1).id)]) {
      await expectFailure(call, 'with its setting `appendonly no`')
    }
    expect(await servers().ask('dbsize')).toEqual(['0'])
    const assuming = await storeWith(name, { persistence: 'assume' })
    expect(await assuming.insert(makeRow(2))).toEqual({ inserted: true })
    await configure('appendonly', 'yes')
    expect(await store.insert(makeRow(1))).toEqual({ inserted: true })
  })

  // docs/decisions/redis-appendfsync.md explains why the store does not check it.
  it('the store accepts `appendfsync everysec`, which it cannot distinguish from `always`', async () => {
    await configure('appendfsync', 'everysec')
    expect(await (await storeWith('node-redis')).insert(makeRow(1))).toEqual({ inserted: true })
    expect((await servers().ask('info', 'everything')).join()).not.toMatch(/everysec|appendfsync/)
    const [answer] = await servers().ask('eval', "return redis.call('CONFIG', 'GET', 'appendfsync')", 0)
    expect(answer).toContain('This Redis command is not allowed from script')
  })

  it('the store rejects an eviction policy that removes any key, and accepts policies for keys that expire', async () => {
    const store = await storeWith('node-redis')
    await configure('maxmemory-policy', 'allkeys-lru')
    await expectFailure(() => store.insert(makeRow(1)), 'with its setting `maxmemory-policy allkeys-lru`')
    const assuming = await storeWith('node-redis', { eviction: 'assume' })
    expect(await assuming.insert(makeRow(1))).toEqual({ inserted: true })
    await configure('maxmemory-policy', 'volatile-lru')
    expect(await store.insert(makeRow(2))).toEqual({ inserted: true })
  })

  it('the store rejects a replica, even one that became a replica later', async () => {
    const [store, later] = [await storeWith('ioredis'), await storeWith('ioredis')]
    await store.insert(makeRow(1))
    await warm(store)
    await servers().ask('replicaof', '127.0.0.1', '1')
    await expectFailure(() => later.get(SCOPE, 'id'), 'it is a replica. Connect the client to the primary.')
    for (const { applied } of await expectFailures(callsOf(store), 'is a replica'))
      expect(applied).toBeUndefined()
  })

  it.each(CLIENTS)(
    'what a replica does not contain proves nothing, even if the store checks nothing, through %s',
    async (name) => {
      const store = await storeWith(name, { persistence: 'assume', eviction: 'assume' })
      await store.insert(makeRow(1))
      await servers().ask('replicaof', '127.0.0.1', '1')
      for (const write of [() => store.insert(makeRow(1)), () => store.update(makeRow(1), 7)])
        expect((await failureOf(write)).applied).toBeUndefined()
      await servers().ask('replicaof', 'no', 'one')
      await expectLaggingCopyIsNotBelieved(store, async () => {
        await servers().ask('flushall')
        await servers().ask('replicaof', '127.0.0.1', '1')
      })
      // A refusal by a replica does not prove that an earlier attempt wrote nothing.
      for (const write of [() => store.insert(makeRow(2)), () => store.update(makeRow(2), 1)])
        expect((await failureOf(write)).applied).toBeUndefined()
    },
  )

  it('the error names the override if the user may not call INFO', async () => {
    await servers().ask('acl', 'setuser', 'default', '-info')
    const client = await clientOf('ioredis', { enableReadyCheck: false })
    const store = new RedisStore({ client })
    const reason = 'INFO does not return `aof_enabled`. Make sure that the server has `appendonly yes`'
    await expectFailure(() => store.insert(makeRow(1)), reason)
    const assuming = new RedisStore({ client, persistence: 'assume', eviction: 'assume' })
    expect(await assuming.insert(makeRow(1))).toEqual({ inserted: true })
  })

  it.each(CLIENTS)('the store inspects the server again after a reconnect, through %s', async (name) => {
    const proxy = await openProxy()
    const client = await clientOf(name, { commandTimeout: 10_000 }, proxy.port)
    const store = new RedisStore({ client })
    await store.insert(makeRow(1))
    await warm(store)
    await configure('appendonly', 'no')
    expect(await store.insert(makeRow(2))).toEqual({ inserted: true })
    const connected = new Promise<void>((resolve) => client.on?.('ready', resolve))
    proxy.loseNextAnswer()
    await store.get(SCOPE, 'any').catch(() => {})
    await connected
    for (const row of [makeRow(3), makeRow(4)])
      await expectFailure(() => store.insert(row), 'with its setting `appendonly no`')
    expect(await store.insert(makeRow(1)).catch(({ message }) => message)).toContain('appendonly')
    await configure('appendonly', 'yes')
    expect(await store.insert(makeRow(3))).toEqual({ inserted: true })
  })

  it('the store inspects a restarted server before it writes, even if the client reports no reconnect', async () => {
    const client = (await clientOf('node-redis')) as NodeRedis
    const silent: RedisClient = {
      eval: (...parameters: Parameters<NodeRedis['eval']>) => client.eval(...parameters),
      evalSha: (...parameters: Parameters<NodeRedis['eval']>) => client.evalSha(...parameters),
    }
    const store = new RedisStore({ client: silent })
    await store.insert(makeRow(1))
    await configure('maxmemory-policy', 'allkeys-lru')
    // A restarted server forgets its scripts.
    await servers().ask('script', 'flush')
    await expectFailure(() => store.insert(makeRow(2)), 'allkeys-lru')
    expect(await servers().ask('keys', '*:row:*')).toHaveLength(1)
  })

  it('the store inspects the server again every hour', async () => {
    const store = await storeWith('node-redis')
    const clock = vi.spyOn(performance, 'now').mockReturnValue(0)
    onTestFinished(() => clock.mockRestore())
    await store.insert(makeRow(1))
    await warm(store)
    await configure('appendonly', 'no')
    clock.mockReturnValue(3_599_999)
    expect(await store.insert(makeRow(2))).toEqual({ inserted: true })
    clock.mockReturnValue(3_600_000)
    await expectFailure(() => store.insert(makeRow(3)), 'appendonly no')
  })

  it('close removes every listener from the client', async () => {
    const client = await clientOf('ioredis')
    const listeners = () => (client as unknown as EventEmitter).listenerCount('ready')
    const before = listeners()
    for (let count = 0; count < 20; count++) {
      const store = new RedisStore({ client })
      await store.get(SCOPE, 'any')
      await store.close()
    }
    expect(listeners()).toBe(before)
  })

  it('the store inspects the server once for each scope', async () => {
    const store = await storeWith('node-redis')
    const other = await storeWith('node-redis')
    await other.insert(makeRow(9))
    await warm(other)
    await servers().ask('config', 'resetstat')
    await Promise.all([1, 2, 3].map((number) => store.insert(makeRow(number))))
    await store.get('another scope', 'id')
    const [sections, scopes] = [3, 2]
    expect(await countOf('info')).toBe(sections * scopes)
  })

  describe.each(CLIENTS)('scripts through %s', (name) => {
    it('scripts are loaded again after a flush, and otherwise sent once', async () => {
      const store = await storeWith(name)
      await insertAll(store, makeRows(3))
      await servers().ask('script', 'flush')
      await servers().ask('config', 'resetstat')
      await mustUpdate(store, nextVersion(makeRow(1), CREATED))
      await insertAll(store, [makeRow(4)])
      expect((await store.list(SCOPE, { limit: 10 })).rows).toHaveLength(4)
      expect((await store.listOpen(SCOPE, { limit: 10 })).rows).toHaveLength(3)
      expect(await store.prune(SCOPE, EVERYTHING)).toBe(1)
      expect(await store.get(SCOPE, makeRow(2).id)).toEqual(makeRow(2))
      // One more call for the inspection.
      const scripts = 5 + 1
      expect(await countOf('eval')).toBe(scripts)
      await insertAll(store, [makeRow(5)])
      expect(await countOf('eval')).toBe(scripts)
    })

    it("scripts touch only the store's own keys, set no expiry, and never scan the database", async () => {
      const store = await storeWith(name)
      await servers().ask('set', 'theirs', '1')
      await servers().ask('config', 'resetstat')
      await insertAll(store, makeRows(20))
      for (const row of makeRows(15))
        await mustUpdate(store, nextVersion(row, row.id < '8' ? CREATED : REJECTED))
      await mustUpdate(store, nextVersion(nextVersion(makeRow(1)), { updatedAt: 0 }))
      await walk((options) => store.list(SCOPE, options), 3)
      await walk((options) => store.listOpen(SCOPE, options), 3)
      for (const command of ['keys', 'scan', 'zrange', 'sort']) expect(await countOf(command)).toBe(0)
      await expectIndexed(servers().port, 20)
      await store.prune(SCOPE, EVERYTHING)
      await expectIndexed(servers().port, 6)
      const rest = await walk((options) => store.listOpen(SCOPE, options), 100)
      for (const row of rest) await mustUpdate(store, nextVersion(row, { ...REJECTED, updatedAt: 7 }))
      expect(await store.prune(SCOPE, { createdBefore: 0, rejectedBefore: 8 })).toBe(6)
      expect(await servers().ask('keys', '*')).toEqual(['theirs'])
    })

    it('a script sent twice after a lost response writes once, or fails without a partial write', async () => {
      const proxy = await openProxy()
      const store = new RedisStore({ client: await clientOf(name, undefined, proxy.port) })
      const direct = await storeWith(name)
      await store.get(SCOPE, 'warm')
      const [row, other] = [makeRow(1), makeRow(2)]
      await insertAll(direct, [other])
      const writes = [
        () => store.insert(row).then(({ inserted }) => inserted),
        () => store.update(nextVersion(row, CREATED), 1),
        () => store.update(nextVersion(other, { data: 'next' }), 1),
      ]
      for (const write of writes) {
        proxy.loseNextAnswer()
        // ioredis resends requests in flight. node-redis reports a lost connection.
        if (name === 'ioredis') expect(await write()).toBe(true)
        else await expectFailure(write, 'may or may not have happened')
      }
      expect(await direct.get(SCOPE, row.id)).toEqual(nextVersion(row, CREATED))
      expect(await direct.get(SCOPE, other.id)).toEqual(nextVersion(other, { data: 'next' }))
      expect(await store.insert(row)).toMatchObject({ inserted: false })
      await expectIndexed(servers().port, 2)
    })
  })

  it('scopes that differ only in escaped characters stay separate', async () => {
    const store = await storeWith('ioredis')
    const scopes = ['', '%', '%25', '{', '%7b', '%7B', '}', '%7d', 'a\u0000', 'a%00', 'a\u0085', 'a%85']
    await insertAll(
      store,
      scopes.map((scope) => makeRow(1, { scope, data: scope })),
    )
    for (const scope of scopes) expect((await store.get(scope, makeRow(1).id))?.data).toBe(scope)
  })

  it.each(CLIENTS)('histories are linearizable while connections break, through %s', async (name) => {
    const proxies = [await openProxy(), await openProxy()]
    const stores: RedisStore[] = []
    for (const proxy of proxies) {
      const hasty =
        name === 'ioredis'
          ? { retryStrategy: () => 5 }
          : { socket: { host: '127.0.0.1', port: proxy.port, reconnectStrategy: 5 } }
      stores.push(new RedisStore({ client: await clientOf(name, hasty, proxy.port) }))
    }
    for (const store of stores) await store.get(SCOPE, 'warm')
    for (const proxy of proxies) proxy.loseEvery(15)
    const { calls, failures } = await recordHistory(stores, { clients: 4, operations: 200 })
    for (const proxy of proxies) expect(proxy.lost).toBeGreaterThan(1)
    expect(explainHistory(calls)).toBeUndefined()
    // ioredis resends requests without a response. node-redis leaves that to the caller.
    if (name === 'ioredis') expect(failures).toEqual([])
    else expect(failures.length).toBeGreaterThan(0)
  })

  it('the history of all clients is linearizable through crashes', async () => {
    const stores = await Promise.all(CLIENTS.map((name) => storeWith(name)))
    await expectHistoryThrough(() => servers().crash(), ...stores)
    await expectIndexed(servers().port)
  })

  it.each(CLIENTS)('a full server accepts no new order, but closes and prunes others: %s', async (name) => {
    const store = await storeWith(name)
    await store.get(SCOPE, 'warm')
    const used = (await servers().ask('info', 'memory')).find((line) => line.startsWith('used_memory:'))
    await configure('maxmemory', Number(used?.split(':')[1]) + 2 ** 20)
    const rows = makeRows(100, { data: 'x'.repeat(50_000) })
    const kept: StoredRow[] = []
    const error = await failureOf(async () => {
      for (const row of rows) {
        await store.insert(row)
        kept.push(row)
      }
    })
    expect(error.message).toBe(
      "Cannot write to the order store in Redis: the server's memory is full. Raise `maxmemory`, or prune old orders. Nothing was written.",
    )
    expect(error).toMatchObject({ applied: false, cause: { code: 'OOM' } })
    expect(kept.length).toBeGreaterThan(3)
    expect(await walk((options) => store.list(SCOPE, options), 10)).toHaveLength(kept.length)
    await expectIndexed(servers().port, kept.length)
    const [first, ...others] = kept
    if (first === undefined) throw new Error('unreachable')
    const closed = nextVersion(first, { ...CREATED, data: 'y'.repeat(50_000) })
    await mustUpdate(store, closed)
    for (const row of others.slice(0, 5)) await mustUpdate(store, nextVersion(row, { ...REJECTED, data: '' }))
    expect(await store.get(SCOPE, first.id)).toEqual(closed)
    await expectIndexed(servers().port, kept.length)
    expect(await store.prune(SCOPE, { createdBefore: 0, rejectedBefore: WRITTEN_AT + 10 })).toBe(5)
    expect(await store.insert(makeRow(500))).toEqual({ inserted: true })
  })

  it.each(CLIENTS)('connection failures reveal no address and no password, through %s', async (name) => {
    const server = await RedisServers.start('single')
    await server.ask('acl', 'setuser', 'shop', 'on', '>correct-horse', '~*', '+@all')
    const options = { username: 'shop', password: 'correct-horse' }
    // Fail immediately instead of waiting for a reconnect.
    const hasty = name === 'ioredis' ? { maxRetriesPerRequest: 0 } : { disableOfflineQueue: true }
    const store = new RedisStore({ client: await clientOf(name, { ...options, ...hasty }, server.port) })
    await store.insert(makeRow(1))
    await server.stop()
    // The first call may still see the end of the connection. The second finds no connection.
    for (const _ of [1, 2]) {
      const reason = /^Cannot read from the order store in Redis: the client is not connected/
      const error = await expectFailure(() => store.get(SCOPE, makeRow(1).id), reason)
      const shown = inspect(error, { depth: 9, showHidden: true })
      expect(shown).not.toMatch(/correct-horse|127\.0\.0\.1/)
      expect(shown).not.toContain(String(server.port))
    }
  })

  it('a permission failure names the missing permission, and writes nothing partially', async () => {
    const needed = 'eval evalsha get getrange set del persist zadd zrem zrangebylex info'.split(' ')
    const user = (...rules: string[]) => servers().ask('acl', 'setuser', 'shop', ...rules)
    await user('reset', 'on', '>word', '~customer-ordering:*', ...needed.map((command) => `+${command}`))
    const client = await clientOf('ioredis', { username: 'shop', password: 'word' })
    const store = new RedisStore({ client })
    await insertAll(store, makeRows(3))
    for (const command of ['set', 'zadd', 'zrem', 'getrange']) {
      await user(`-${command}`)
      const next = nextVersion(makeRow(1), CREATED)
      const reason = 'lacks a permission. Allow it to run EVAL, EVALSHA, GET,'
      await expectFailure(() => store.update(next, 1), reason)
      await user(`+${command}`)
      expect(await store.get(SCOPE, next.id)).toEqual(makeRow(1))
      expect(await walk((options) => store.listOpen(SCOPE, options), 9)).toHaveLength(3)
      expect(await servers().ask('keys', '*created')).toEqual([])
    }
    await mustUpdate(store, nextVersion(makeRow(1), CREATED))
    expect(await walk((options) => store.list(SCOPE, options), 2)).toHaveLength(3)
    expect(await store.prune(SCOPE, EVERYTHING)).toBe(1)
    const elsewhere = new RedisStore({ client, prefix: 'theirs:' })
    expect((await failureOf(() => elsewhere.get(SCOPE, 'id'))).cause).toMatchObject({ code: 'NOPERM' })
  })

  it('the store writes nothing if the server has too few replicas', async () => {
    await configure('min-replicas-to-write', '1')
    const error = await failureOf(async () => (await storeWith('node-redis')).insert(makeRow(1)))
    expect(error).toMatchObject({ applied: false, cause: { code: 'NOREPLICAS' } })
    expect(await servers().ask('dbsize')).toEqual(['0'])
  })

  it.each([
    // A primary that has lost its replicas may have been replaced, so its rows prove nothing.
    ['min-replicas-to-write', '1', 'unknown', '0', 'fewer replicas'],
    ['maxmemory', '1', 'no', '0', 'memory is full'],
  ])(
    'if the server has %s %s, `charged` of a new order is %s, and no request is sent',
    async (name, bad, charged, good, reason) => {
      const { sandbox, client } = shopOver(await storeWith('node-redis'))
      await configure(name, bad)
      const error = await expectFailure(() => client.orders.create(order('r1')), reason)
      expect(error.charged).toBe(charged)
      expect(sandbox.requests).toEqual([])
      await configure(name, good)
      await client.orders.create(order('r1'))
      sandbox.expectChargedOnce('r1')
    },
  )

  it('the store rejects a client inside a transaction', async () => {
    const client = (await clientOf('ioredis')) as Ioredis
    const store = new RedisStore({ client })
    await store.get(SCOPE, 'warm')
    await client.multi({ pipeline: false })
    await expectFailure(() => store.insert(makeRow(1)), 'Pass a client that is not inside a transaction')
  })

  it('the store rejects a foreign value under one of its keys', async () => {
    const store = await storeWith('ioredis')
    await insertAll(store, [makeRow(1)])
    const [key = ''] = await servers().ask('keys', '*:row:*')
    await servers().ask('set', key, 'theirs')
    const writes = [() => store.insert(makeRow(1)), () => store.update(nextVersion(makeRow(1)), 1)]
    await expectFailures([...readsOf(store), ...writes], 'contains a row that it did not write')
    await servers().ask('set', key.replace(/row:.*/, 'list'), 'theirs')
    const error = await failureOf(() => store.list(SCOPE, { limit: 1 }))
    expect(error.cause).toMatchObject({ code: 'WRONGTYPE' })
  })

  describe('clients with unusual settings', () => {
    const use = async (client: RedisClient): Promise<void> => {
      const store = new RedisStore({ client })
      const rows = makeRows(3, { data: 'größer\u0000 👩‍👩‍👧‍👦' })
      await insertAll(store, rows)
      await mustUpdate(store, nextVersion(makeRow(1), { ...CREATED, data: '' }))
      expect(await store.get(SCOPE, makeRow(2).id)).toEqual(rows[1])
      expect(await walk((options) => store.list(SCOPE, options), 2)).toHaveLength(3)
      expect(await walk((options) => store.listOpen(SCOPE, options), 1)).toHaveLength(2)
      expect(await store.prune(SCOPE, EVERYTHING)).toBe(1)
      expect(await store.get(SCOPE, makeRow(1).id)).toBeUndefined()
      await expectIndexed(servers().port, 2)
    }

    it.each([
      ['a prefix of its own', { keyPrefix: 'app {braces}: ' }],
      ['numbers as text', { stringNumbers: true }],
      ['pipelines that it makes by itself', { enableAutoPipelining: true }],
      ['the older protocol', { protocol: 2 }],
    ])('the store works with ioredis with %s', async (_, options) => use(await clientOf('ioredis', options)))

    it.each([
      ['the older protocol', { RESP: 2 }],
      ['the newer protocol', { RESP: 3 }],
      ['a limit on its queue', { commandsQueueMaxLength: 100 }],
    ])('the store works with node-redis with %s', async (_, options) =>
      use(await clientOf('node-redis', options)),
    )

    it('the store works with a node-redis client that returns bytes', async () => {
      const client = (await clientOf('node-redis')) as NodeRedis
      await use(client.withTypeMapping({ [nodeRedis().RESP_TYPES.BLOB_STRING]: Buffer }))
    })

    it('the store works with a pool of node-redis', async () => {
      const url = `redis://127.0.0.1:${servers().port}`
      const pool = nodeRedis().createClientPool({ url }, { minimum: 2, maximum: 4 })
      open.push({ close: () => pool.destroy() })
      await use(await pool.on('error', () => {}).connect())
    })
  })

  it('prune removes many rows in batches, and other calls run in between', async () => {
    const [store, other] = [await storeWith('node-redis'), await storeWith('ioredis')]
    await insertAll(store, [...makeRows(1_000, CREATED), makeRow(2_000)])
    const finished: string[] = []
    const pruned = store.prune(SCOPE, EVERYTHING).finally(() => finished.push('prune'))
    await other.insert(makeRow(2_001)).finally(() => finished.push('insert'))
    expect(await pruned).toBe(1_000)
    expect(finished).toEqual(['insert', 'prune'])
    await expectIndexed(servers().port, 2)
  })

  it('prune removes only closed rows, even if the index is wrong', async () => {
    const store = await storeWith('node-redis')
    await insertAll(store, [makeRow(1), makeRow(2, REJECTED), makeRow(3, CREATED)])
    const [list = ''] = await servers().ask('keys', '*:list')
    for (const entry of await servers().ask('zrange', list, 0, -1))
      await servers().ask('zadd', list.replace(/list$/, 'created'), 0, entry)
    expect(await store.prune(SCOPE, { createdBefore: WRITTEN_AT + 1, rejectedBefore: 0 })).toBe(1)
    await expectIndexed(servers().port, 2)
  })

  it('pages of large rows are shorter, so that no response becomes too large', async () => {
    const store = await storeWith('ioredis')
    await insertAll(store, makeRows(12, { data: 'x'.repeat(2 ** 20) }))
    for (const read of [
      (options: { limit: number }) => store.list(SCOPE, options),
      (options: { limit: number }) => store.listOpen(SCOPE, options),
    ]) {
      const page = await read({ limit: 1_000_000 })
      expect(page.rows.length).toBe(4)
      expect(page.next).toBeDefined()
      expect(await walk(read, 1_000_000)).toHaveLength(12)
    }
  })
})
