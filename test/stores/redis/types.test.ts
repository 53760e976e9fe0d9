import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeWith } from '../support/redis.ts'
import { enginesFolder } from '../support/redis-clients.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))

const program = `
import { Cluster, Redis } from 'ioredis'
import { createClient, createClientPool, createCluster, createSentinel } from 'redis'
import { RedisStore } from '${root}src/stores/redis.ts'

new RedisStore({ client: new Redis() })
new RedisStore({ client: new Cluster([]) })
new RedisStore({ client: createClient() })
new RedisStore({ client: createClient({ RESP: 3 }) })
new RedisStore({ client: createClientPool() })
new RedisStore({ client: createCluster({ rootNodes: [] }), prefix: 'shop:' })
new RedisStore({ client: createSentinel({ name: 'shop', sentinelRootNodes: [] }), persistence: 'assume' })
new RedisStore({ client: await createClient().on('error', () => {}).connect() })
`

const wrong = `
import { RedisStore } from '${root}src/stores/redis.ts'
// @ts-expect-error
new RedisStore({ client: { query: async () => [] } })
// @ts-expect-error
new RedisStore({})
`

describeWith('clients', 'The types of RedisStore', () => {
  let folder = ''
  beforeAll(() => {
    // In there the packages are found.
    folder = mkdtempSync(fileURLToPath(new URL('node_modules/.types-', enginesFolder)))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('take the clients of both packages as they come, and nothing else', () => {
    writeFileSync(join(folder, 'program.mts'), program)
    writeFileSync(join(folder, 'wrong.mts'), wrong)
    const compilerOptions = {
      target: 'es2022',
      lib: ['es2023', 'dom', 'dom.iterable', 'esnext.disposable'],
      module: 'nodenext',
      strict: true,
      exactOptionalPropertyTypes: true,
      allowImportingTsExtensions: true,
      skipLibCheck: true,
      noEmit: true,
      types: ['node'],
      typeRoots: [join(root, 'node_modules/@types')],
    }
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({ compilerOptions, files: ['program.mts', 'wrong.mts'] }),
    )
    let complaints = ''
    try {
      execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder])
    } catch (error) {
      complaints = String(Reflect.get(error as object, 'stdout'))
    }
    expect(complaints).toBe('')
  })
})
