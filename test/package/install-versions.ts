import { execFile } from 'node:child_process'
import { cp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { root } from '../../tools/build/ensure-built.ts'

const run = promisify(execFile)

/**
 * Installs the packages of the folder `versions`, unless an earlier run has done so. Returns the
 * folder.
 */
export async function installVersions(): Promise<string> {
  const source = join(root, 'test/package/versions')
  const directory = join(root, '.tmp/versions')
  const lockfile = await readFile(join(source, 'package-lock.json'), 'utf8')
  const installed = await readFile(join(directory, 'installed'), 'utf8').catch(() => '')
  if (installed === lockfile) return directory
  await rm(directory, { recursive: true, force: true })
  await cp(source, directory, { recursive: true })
  await run('npm', ['ci', '--ignore-scripts'], { cwd: directory })
  await writeFile(join(directory, 'installed'), lockfile)
  return directory
}
