/** CPU profiles of single calls for the page: runs of tools/bench/profile.ts in separate processes. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { BASELINE } from './contenders.ts'
import { BARE_POST } from './create.ts'
import type { Profile } from './profile.ts'

const run = promisify(execFile)

const OURS = 'this package'
const COMPARED = [BASELINE, 'ky, defaults', OURS]
/** The profiled clients, by task. */
const PROFILED: Readonly<Record<string, readonly string[]>> = {
  GET: COMPARED,
  'list of 50': COMPARED,
  POST: COMPARED,
  create: [BARE_POST, OURS],
}

/** Profiles by task and client. */
export type Profiles = ReadonlyMap<string, ReadonlyMap<string, Profile>>

/** Profiles one client after the other, each for two seconds. */
export async function measureProfiles(): Promise<Profiles> {
  const program = fileURLToPath(new URL('profile.ts', import.meta.url))
  const found = new Map<string, ReadonlyMap<string, Profile>>()
  for (const [task, clients] of Object.entries(PROFILED)) {
    const profiles = new Map<string, Profile>()
    for (const client of clients) {
      const options = ['--client', client, '--seconds', '2', '--json']
      const { stdout } = await run(process.execPath, [program, task, ...options], { timeout: 120_000 })
      profiles.set(client, JSON.parse(stdout))
    }
    found.set(task, profiles)
  }
  return found
}
