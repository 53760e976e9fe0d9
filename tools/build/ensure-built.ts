import { spawnSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Folder of the project. */
export const root: string = fileURLToPath(new URL('../..', import.meta.url))

/** The files and folders that the build reads. */
const sources = ['src', 'package.json', 'package-lock.json', 'tsconfig.json', 'tsup.config.ts', 'tools/build']

/** A file of each part of the build. A build that fails lacks one of them. */
const parts = ['dist/index.js', 'dist/index.d.ts', 'dist/index.d.cts', 'dist/node/index.js']

/** True if each part of `dist` exists and is newer than every source. */
export function isBuilt(): boolean {
  const times = parts.map((part) => statSync(join(root, part), { throwIfNoEntry: false })?.mtimeMs ?? 0)
  const oldest = Math.min(...times)
  return sources.every((source) => newest(join(root, source)) <= oldest)
}

/** Builds the package unless the build is current. */
export function ensureBuilt(): void {
  if (isBuilt()) return
  process.stderr.write('Building the package first…\n')
  const { status } = spawnSync(
    process.execPath,
    [join(root, 'node_modules/tsup/dist/cli-default.js'), '--silent'],
    {
      cwd: root,
      stdio: ['ignore', 'ignore', 'inherit'],
    },
  )
  if (status !== 0) throw new Error('The build failed; `npm run build` shows why.')
}

function newest(path: string): number {
  const stats = statSync(path)
  if (!stats.isDirectory()) return stats.mtimeMs
  return readdirSync(path).reduce((time, name) => Math.max(time, newest(join(path, name))), stats.mtimeMs)
}

if (import.meta.main) ensureBuilt()
