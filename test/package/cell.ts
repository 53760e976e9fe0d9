import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'vitest'
import { root } from '../../scripts/ensure-built.ts'
import { notRun } from '../support/needs.ts'

/** Where run-times, bundlers and test runners are installed that the project itself does not need. */
export const engines: string = join(root, 'test/package/engines')

/** A run-time, bundler or compiler that the package is tried with. */
export interface Tool {
  readonly name: string
  /** What it says of itself; undefined if it is not here. */
  readonly version: string | undefined
}

/** A program that tells its version when it is asked for `--version`. */
export function program(name: string, path: string): Tool {
  if (!existsSync(path)) return { name, version: undefined }
  return { name, version: execFileSync(path, ['--version'], { encoding: 'utf8' }).trim().replace(/^v/, '') }
}

/** A package in `node_modules` of a folder. */
export function installed(name: string, folder: string, packageName = name.toLowerCase()): Tool {
  const file = join(folder, 'node_modules', packageName, 'package.json')
  return { name, version: existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : undefined }
}

/** A bundler, which the project or the engines bring. */
export function bundler(name: string): Tool {
  const own = installed(name, root)
  return own.version === undefined ? installed(name, engines) : own
}

/**
 * Defines the test of one cell of the matrix, which prints a line when it has passed. A cell that cannot run here is skipped
 * and says so; in CI it fails.
 */
export function cell({ name, version }: Tool, how: string, body: () => Promise<void>): void {
  if (version === undefined) {
    notRun(`${name}, ${how}`, 'it is not installed')
    return
  }
  const title = `${name} ${version}, ${how}`
  it(title, async () => {
    await body()
    process.stdout.write(`${title}: passed\n`)
  })
}
