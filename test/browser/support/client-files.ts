import { readdirSync } from 'node:fs'
import { basename } from 'node:path'

const folder = new URL('../../client/', import.meta.url)

/** Files of test/client that test Node itself or need its modules, with the reason. */
export const NODE_ONLY: Readonly<Record<string, string>> = {
  'close.test.ts': 'SqliteStore',
  'codec.test.ts': 'util.inspect',
  'hostile-prototypes.test.ts': 'processes of its own; pages have the same',
  'memory-of-results.test.ts': 'the garbage collector of V8',
  'causes.test.ts': 'stacks of V8',
  'polluted-prototypes.test.ts': 'system errors of Node',
  'secrets.test.ts': 'util.inspect, and a raw TCP server',
  'server-runtimes.test.ts': 'what browsers do not have',
  'stacks.test.ts': 'traces of V8 over the files of the source',
  'stored-rows.test.ts': 'a fixture in a file',
  'wrong-arguments.test.ts': 'SqliteStore',
}

/** Files of test/client that run in a page as they are. */
export const clientFiles: readonly string[] = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.test.ts') && !Object.hasOwn(NODE_ONLY, basename(file)))
  .sort()
