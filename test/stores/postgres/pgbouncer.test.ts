/** The store behind PgBouncer, in both pool modes. Its procedures end their own transactions. */
import { execFileSync, spawn } from 'node:child_process'
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PostgresStore } from 'customer-ordering-sdk/stores/postgres'
import { describe, expect, it } from 'vitest'
import { makeRow } from '../../../src/stores/contract/rows.ts'
import { freePort } from '../../support/free-port.ts'
import { contractOver } from '../support/contract-over.ts'
import { during, two } from '../support/during.ts'
import { makePool, type PgPool } from '../support/postgres-clients.ts'
import { describeWith, PGBOUNCER } from '../support/services.ts'
import { SqlServer } from '../support/sql-server.ts'

const MODES = ['session', 'transaction'] as const

interface Bouncer {
  readonly server: SqlServer
  readonly url: string
  stop(): Promise<void>
}

/** PgBouncer with few connections to a server of its own. Clients of all databases share them. */
async function start(mode: (typeof MODES)[number]): Promise<Bouncer> {
  const server = await SqlServer.start('postgres', '-c max_connections=60')
  const { port: behind, password } = new URL(server.url)
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'pgbouncer-'))
  writeFileSync(
    join(folder, 'pgbouncer.ini'),
    `[databases]
* = host=127.0.0.1 port=${behind} user=postgres password=${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
default_pool_size = ${mode === 'session' ? 20 : 3}
ignore_startup_parameters = extra_float_digits
`,
  )
  // PgBouncer refuses to run as root.
  const idOf = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  const ids = process.getuid?.() === 0 ? { uid: idOf('-u'), gid: idOf('-g') } : {}
  if (ids.uid !== undefined && ids.gid !== undefined)
    for (const path of [folder, join(folder, 'pgbouncer.ini')]) chownSync(path, ids.uid, ids.gid)
  const child = spawn(PGBOUNCER, [join(folder, 'pgbouncer.ini')], {
    ...ids,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const ended = new Promise((resolve) => child.once('close', resolve))
  await new Promise<void>((resolve, reject) => {
    let log = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      log += text
      if (log.includes('process up')) resolve()
    })
    child.once('close', () => reject(new Error(log)))
  })
  const url = new URL(server.url)
  url.port = String(port)
  return {
    server,
    url: url.href,
    stop: async () => {
      child.kill('SIGINT')
      await ended
      rmSync(folder, { recursive: true })
      await server.stop()
    },
  }
}

describeWith('pgbouncer', 'PostgresStore behind PgBouncer', () => {
  describe.each(MODES)('in pool mode %s', (mode) => {
    const bouncer = during(
      () => start(mode),
      (started) => started.stop(),
    )
    const pools = two(
      () => makePool(bouncer().url),
      (pool) => pool.end(),
    )
    const open = (pool: PgPool, table: string) => new PostgresStore({ client: pool, table })
    contractOver(pools, (pool, number) => open(pool, `rows_${number}`), {
      remove: (number) => pools()[0].query(`DROP TABLE IF EXISTS rows_${number}, rows_${number}_versions`),
      operations: 60,
    })

    it('a connection that was released after BEGIN takes no acknowledged row with it', async () => {
      const [pool] = pools()
      await open(pool, 'leaky').migrate()
      const leaky = makePool(bouncer().url, { max: 1 })
      const client = await leaky.connect()
      await client.query('BEGIN')
      client.release()
      const row = makeRow(1)
      const acknowledged = await open(leaky, 'leaky')
        .insert(row)
        .then(
          ({ inserted }) => inserted,
          () => false,
        )
      await leaky.end()
      expect((await open(pool, 'leaky').get(row.scope, row.id)) !== undefined).toBe(acknowledged)
    })

    it('every acknowledged row survives a crash of the server under load', async () => {
      const store = open(pools()[0], 'crashed')
      await store.migrate()
      const acknowledged: string[] = []
      let going = true
      const writers = Array.from({ length: 6 }, async (_, writer) => {
        for (let number = 0; going; number++) {
          const row = makeRow(1000 * writer + number)
          const { inserted } = await store.insert(row).catch(() => ({ inserted: false }))
          if (inserted) acknowledged.push(row.id)
        }
      })
      while (acknowledged.length < 200) await new Promise((resolve) => setImmediate(resolve))
      await bouncer().server.crash()
      const before = acknowledged.length
      while (acknowledged.length < before + 50) await new Promise((resolve) => setImmediate(resolve))
      going = false
      await Promise.all(writers)
      const { scope } = makeRow(1)
      for (const id of acknowledged) expect(await store.get(scope, id)).toBeDefined()
    }, 120_000)
  })
})
