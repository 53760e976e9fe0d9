import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A private server of this process, which ends with the process. */
export interface Service {
  readonly url: string
  stop(): void
}

const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

function startDatabase(name: string, environment: Readonly<Record<string, string>> = {}): Service {
  const output = execFileSync(script(name), ['start', String(process.pid)], {
    encoding: 'utf8',
    env: { ...process.env, ...environment },
  })
  const [, directory = '', url = ''] = /^directory=(.*)\nurl=(.*)$/m.exec(output) ?? []
  return { url, stop: () => execFileSync(script(name), ['stop', directory]) }
}

/** Starts PostgreSQL (postgres.sh). `fsync` makes it wait for the disk. */
export function startPostgres({ fsync = false }: { readonly fsync?: boolean } = {}): Service {
  return startDatabase('postgres.sh', { FSYNC: fsync ? 'on' : 'off' })
}

/** Starts MariaDB (mariadb.sh), which waits for the disk. */
export const startMariadb = (): Service => startDatabase('mariadb.sh')

/** Starts one Redis server (redis.sh). */
export function startRedis(): Service {
  const directory = mkdtempSync(join(tmpdir(), 'redis-'))
  // redis.sh creates the directory itself.
  rmSync(directory, { recursive: true })
  const parameters = ['start', directory, 'single', '--owner', String(process.pid)]
  const port = execFileSync(script('redis.sh'), parameters, { encoding: 'utf8' }).trim()
  return {
    url: `redis://127.0.0.1:${port}`,
    stop: () => execFileSync(script('redis.sh'), ['stop', directory]),
  }
}
