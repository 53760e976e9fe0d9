/** Database servers, and tests that need them or their clients. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describeUnless } from '../../support/needs.ts'
import { enginesFolder } from './engines.ts'

/** A script of tools/services, which starts and stops servers. */
export const serviceScript = (name: 'postgres' | 'redis' | 'mariadb'): string =>
  fileURLToPath(new URL(`../../../tools/services/${name}.sh`, import.meta.url))

/** The program, which may also be named by the environment. */
export const PGBOUNCER: string = process.env['PGBOUNCER'] ?? 'pgbouncer'

/** The script's check that a server is installed. */
const SERVERS = {
  clients: [],
  postgres: [[serviceScript('postgres'), 'check']],
  pgbouncer: [
    [serviceScript('postgres'), 'check'],
    [PGBOUNCER, '--version'],
  ],
  mariadb: [[serviceScript('mariadb'), 'check']],
  redis: [
    ['redis-server', '--version'],
    ['redis-cli', '--version'],
  ],
} as const

/** Describes tests that need the clients, or a server as well. */
export function describeWith(needed: keyof typeof SERVERS, title: string, body: () => void): void {
  describeUnless(missing(needed), title, body)
}

/** The reason why something required is missing, or undefined. */
function missing(needed: keyof typeof SERVERS): string | undefined {
  const clients = ['pg', 'mysql2', 'redis', 'ioredis', 'miniflare'].map(
    (name) => `node_modules/${name}/package.json`,
  )
  if (!clients.every((file) => existsSync(new URL(file, enginesFolder))))
    return 'run `npx node tools/programs/install.ts test/engines`'
  try {
    for (const [program, argument] of SERVERS[needed]) execFileSync(program, [argument], { stdio: 'ignore' })
    return undefined
  } catch {
    return `no server of ${needed} is installed`
  }
}
