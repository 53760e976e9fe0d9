import { RedisStore } from 'customer-ordering-sdk/stores/redis'
import { afterEach, expect, it } from 'vitest'
import {
  EVERYTHING,
  insertAll,
  makeRow,
  makeRows,
  mustUpdate,
  nextVersion,
  SCOPE,
  walk,
} from '../../../src/stores/contract/rows.ts'
import { expectHistoryThrough } from '../support/disaster.ts'
import { redisServers } from '../support/during.ts'
import { expectFailure, failureOf } from '../support/failures.ts'
import { RedisServers } from '../support/redis.ts'
import { CLIENTS, type ClientName, type Connection, connect } from '../support/redis-clients.ts'
import { expectIndexed } from '../support/redis-indexes.ts'
import { describeWith } from '../support/services.ts'

const CREATED = { open: false, state: 'created' } as const

describeWith('redis', 'RedisStore on a cluster of its own', () => {
  const servers = redisServers('cluster', '--appendfsync', 'always')
  const open: Connection[] = []

  afterEach(async () => {
    for (const { close } of open.splice(0)) close()
    for (const port of servers().ports) await servers().askAt(port, 'flushall')
  })

  async function storeWith(name: ClientName, options: object = {}, ports = servers().ports) {
    const connection = await connect(name, ports, { ...options })
    open.push(connection)
    return new RedisStore({ client: connection.client })
  }

  const keysAt = (port: number) => servers().askAt(port, 'keys', '*')

  /** The ports of the servers with keys, and of one server without keys. */
  async function places(): Promise<{ readonly full: readonly number[]; readonly empty: number }> {
    const full: number[] = []
    let empty = 0
    for (const port of servers().ports) {
      if ((await keysAt(port)).length > 0) full.push(port)
      else empty = port
    }
    return { full, empty }
  }

  it.each(['', ' ', '{}', '}{', '{', '}', '{a}b', '%', '%7b', '{"a":"ü"}', 'long'])(
    'the store keeps all rows and indexes of the scope %j in one slot',
    async (label) => {
      const scope = label === 'long' ? label.repeat(200) : label
      const store = await storeWith('node-redis')
      await insertAll(store, [
        ...makeRows(5, { scope }),
        makeRow(6, { scope, ...CREATED }),
        makeRow(7, { scope, open: false, state: 'rejected' }),
      ])
      const { full } = await places()
      expect(full).toHaveLength(1)
      const keys = await keysAt(full[0] ?? 0)
      expect(keys).toHaveLength(7 + 4)
      const slots = await Promise.all(keys.map((key) => servers().ask('cluster', 'keyslot', key)))
      expect(new Set(slots.flat()).size).toBe(1)
      await expectIndexed(full[0] ?? 0, 7)
    },
  )

  it('the store spreads scopes over all servers', async () => {
    const store = await storeWith('ioredis')
    await insertAll(
      store,
      Array.from({ length: 30 }, (_, shop) => makeRow(1, { scope: `shop ${shop}` })),
    )
    expect((await places()).full).toHaveLength(servers().ports.length)
  })

  it.each(CLIENTS)('the store inspects the server of the scope, through %s', async (name) => {
    const [wrong = 0] = servers().ports
    await servers().askAt(wrong, 'config', 'set', 'appendonly', 'no')
    const store = await storeWith(name)
    const scopes = Array.from({ length: 12 }, (_, shop) => `shop ${shop}`)
    const refusals: string[] = []
    for (const scope of scopes) {
      await store.insert(makeRow(1, { scope })).catch((error) => refusals.push(String(error)))
    }
    expect(refusals.length).toBeGreaterThan(0)
    expect(refusals.length).toBeLessThan(scopes.length)
    for (const refusal of refusals) expect(refusal).toContain('`appendonly no`')
    expect(await keysAt(wrong)).toEqual([])
    await servers().askAt(wrong, 'config', 'set', 'appendonly', 'yes')
    await Promise.all(scopes.map((scope) => store.insert(makeRow(1, { scope }))))
    for (const scope of scopes) expect(await store.get(scope, makeRow(1).id)).toBeDefined()
  })

  it.each(CLIENTS)("while a scope's slot moves, %s rejects writes, and splits no rows", async (name) => {
    // ioredis retries on its own, many more times unless limited.
    const store = await storeWith(name, name === 'ioredis' ? { maxRedirections: 2 } : {})
    await insertAll(store, makeRows(6))
    for (const row of makeRows(2)) await mustUpdate(store, nextVersion(row, CREATED))
    const { full, empty: to } = await places()
    const [from = 0] = full
    const keys = await keysAt(from)
    const [slot = ''] = await servers().ask('cluster', 'keyslot', keys[0] ?? '')
    const [fromId = ''] = await servers().askAt(from, 'cluster', 'myid')
    const [toId = ''] = await servers().askAt(to, 'cluster', 'myid')
    await servers().askAt(to, 'cluster', 'setslot', slot, 'importing', fromId)
    await servers().askAt(from, 'cluster', 'setslot', slot, 'migrating', toId)
    const move = (key: string) => servers().askAt(from, 'migrate', '127.0.0.1', to, key, 0, 5_000)
    await move(keys.find((key) => key.includes(makeRow(3).id)) ?? '')
    await move(keys.find((key) => key.includes(makeRow(1).id)) ?? '')

    // A single row can be read on any server.
    for (const number of [3, 4]) expect(await store.get(SCOPE, makeRow(number).id)).toEqual(makeRow(number))
    for (const call of [
      () => store.insert(makeRow(100)),
      () => store.insert(makeRow(3, { data: 'again' })),
      () => store.update(nextVersion(makeRow(3), CREATED), 1),
      () => store.listOpen(SCOPE, { limit: 10 }),
      () => store.list(SCOPE, { limit: 10 }),
      () => store.prune(SCOPE, EVERYTHING),
    ]) {
      const { message } = await failureOf(call)
      expect(message).toMatch(/moving the slot of these keys to another node|cluster has settled/)
    }

    for (const key of await keysAt(from)) await move(key)
    for (const port of servers().ports) {
      await servers().askAt(port, 'cluster', 'setslot', slot, 'node', toId)
    }
    expect(await keysAt(from)).toEqual([])
    // Rows that a script had begun to prune are gone now or after the next call. No other row is.
    await store.prune(SCOPE, EVERYTHING)
    await expectIndexed(to, 4)
    expect(await walk((options) => store.listOpen(SCOPE, options), 2)).toHaveLength(4)
    expect(await store.insert(makeRow(100))).toEqual({ inserted: true })
    await mustUpdate(store, nextVersion(makeRow(3), CREATED))
    await expectIndexed(to, 5)
  })

  it('the history of all clients is linearizable through crashes', async () => {
    const stores = await Promise.all(CLIENTS.map((name) => storeWith(name)))
    await expectHistoryThrough(() => servers().crash(), ...stores)
    for (const port of servers().ports) await expectIndexed(port)
  })

  it('the error explains that a slot is not served, or that the client does not support clusters', async () => {
    const store = await storeWith('node-redis')
    await insertAll(store, [makeRow(1)])
    const { full, empty } = await places()
    const plain = await storeWith('ioredis', {}, [empty])
    await expectFailure(() => plain.get(SCOPE, makeRow(1).id), 'Pass a cluster client.')

    const [key = ''] = await keysAt(full[0] ?? 0)
    const [slot = ''] = await servers().ask('cluster', 'keyslot', key)
    await servers().askAt(full[0] ?? 0, 'config', 'set', 'cluster-require-full-coverage', 'no')
    await servers().askAt(full[0] ?? 0, 'cluster', 'delslots', slot)
    const error = await failureOf(() => store.insert(makeRow(2)))
    expect(error.cause).toMatchObject({ code: 'CLUSTERDOWN' })
    await servers().askAt(full[0] ?? 0, 'cluster', 'addslots', slot)
    await expect
      .poll(() => store.insert(makeRow(2)).then(({ inserted }) => inserted), { timeout: 90_000 })
      .toBe(true)
  })

  it('the store never reads from a replica, even if the client does', async () => {
    const replica = await RedisServers.start('single', '--cluster-enabled yes')
    try {
      const [primary = 0] = servers().ports
      const [id = ''] = await servers().ask('cluster', 'myid')
      await replica.ask('cluster', 'meet', '127.0.0.1', primary)
      await expect.poll(() => replica.ask('cluster', 'replicate', id), { timeout: 90_000 }).toEqual(['OK'])
      await expect
        .poll(async () => (await replica.ask('info', 'replication')).join(), { timeout: 90_000 })
        .toContain('master_link_status:up')
      for (const port of servers().ports) {
        await expect
          .poll(async () => (await servers().askAt(port, 'cluster', 'slots')).join(), { timeout: 90_000 })
          .toContain(String(replica.port))
      }
      const scopes = Array.from({ length: 20 }, (_, shop) => `shop ${shop}`)
      for (const [name, options] of [
        ['ioredis', { scaleReads: 'slave' }],
        ['node-redis', { useReplicas: true }],
      ] as const) {
        const store = await storeWith(name, options)
        await replica.ask('config', 'resetstat')
        for (const scope of scopes) {
          await store.insert(makeRow(1, { scope }))
          expect(await store.get(scope, makeRow(1).id)).toEqual(makeRow(1, { scope }))
          expect((await store.listOpen(scope, { limit: 5 })).rows).toHaveLength(1)
        }
        const asked = (await replica.ask('info', 'commandstats')).join()
        expect(asked).not.toMatch(/cmdstat_(evalsha|eval|get|zrangebylex):/)
      }
      expect((await replica.ask('keys', '*:row:*')).length).toBeGreaterThan(0)
    } finally {
      await replica.stop()
    }
  })
})
