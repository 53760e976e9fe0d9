/**
 * `node tools/programs/install.ts FOLDER`: installs the packages of a folder with a lockfile of its
 * own, unless they are installed as the lockfile says.
 */
import { execFileSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../build/ensure-built.ts'

export function install(folder: string): void {
  if (isInstalled(folder)) return
  process.stderr.write(`Installing the packages of ${folder} first…\n`)
  execFileSync('npm', ['ci', '--prefix', folder], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] })
}

/** npm writes a copy of the lockfile when it is done. */
export function isInstalled(folder: string): boolean {
  const done = statSync(join(root, folder, 'node_modules/.package-lock.json'), { throwIfNoEntry: false })
  return done !== undefined && done.mtimeMs >= statSync(join(root, folder, 'package-lock.json')).mtimeMs
}

if (import.meta.main) install(process.argv[2] ?? '')
