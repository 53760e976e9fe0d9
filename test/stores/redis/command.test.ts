import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { RedisStore } from '../../../src/stores/redis.ts'
import { command, failsWithoutServer, settlesThroughCommand } from '../support/command.ts'
import { during, redisServers } from '../support/during.ts'
import { enginesFolder } from '../support/engines.ts'
import { nodeRedis } from '../support/redis-clients.ts'
import { describeWith } from '../support/services.ts'

const engines = fileURLToPath(enginesFolder)

describeWith('redis', 'the command over Redis', () => {
  const servers = redisServers('single')
  const client = during(
    () =>
      nodeRedis()
        .createClient({ url: `redis://127.0.0.1:${servers().port}` })
        .on('error', () => {})
        .connect(),
    (connected) => connected.destroy(),
  )
  /** A project with this ioredis and without node-redis. */
  const only = (name: 'ioredis' | 'ioredis-5'): string => {
    const folder = mkdtempSync(join(tmpdir(), 'only-ioredis-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    mkdirSync(join(folder, 'node_modules'))
    symlinkSync(join(engines, 'node_modules', name), join(folder, 'node_modules/ioredis'))
    return folder
  }

  it.each([
    ['node-redis', () => engines],
    ['ioredis', () => only('ioredis')],
    ['ioredis 5.0', () => only('ioredis-5')],
  ])(
    "the command settles an order with the project's %s, and closes its connection",
    async (_name, folder) => {
      const before = await connections()
      const url = `redis://127.0.0.1:${servers().port}`
      await settlesThroughCommand(new RedisStore({ client: client() }), `--store ${url}`, folder())
      await expect.poll(connections).toBe(before)
    },
  )

  it.each([
    ['node-redis', () => engines],
    ['ioredis', () => only('ioredis')],
  ])('the command exits with 1 if no server listens, and does not reconnect: %s', (_name, folder) =>
    failsWithoutServer('redis://:secret-word@127.0.0.1:1', folder()),
  )

  it('the command names the store, the account and the server if a Redis store has no orders', async () => {
    const url = `redis://127.0.0.1:${servers().port}/7`
    const { code, out, err } = await command(`unresolved --store ${url} --account shop`, engines)
    expect({ code, out }).toEqual({ code: 0, out: 'none\n' })
    expect(err).toContain(`The store ${url} has no orders of any account.`)
    expect(err).toContain('["http://127.0.0.1:1","shop"]')
  })

  async function connections(): Promise<number> {
    const lines = await servers().ask('client', 'list')
    return lines.filter((line) => !line.includes('cmd=client')).length
  }
})
