import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'vitest'
import { root } from '../../tools/build/ensure-built.ts'
import { notRun } from '../support/needs.ts'
import { engines } from './node-versions.ts'

/** A runtime, bundler or compiler to try the package with. */
export interface Tool {
  readonly name: string
  readonly version: string | undefined
}

export function program(name: string, path: string): Tool {
  if (!existsSync(path)) return { name, version: undefined }
  return { name, version: execFileSync(path, ['--version'], { encoding: 'utf8' }).trim().replace(/^v/, '') }
}

export function installed(name: string, folder: string, packageName = name.toLowerCase()): Tool {
  const file = join(folder, 'node_modules', packageName, 'package.json')
  return { name, version: existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : undefined }
}

/** A bundler from the project or from the engines folder. */
export function bundler(name: string): Tool {
  const own = installed(name, root)
  return own.version === undefined ? installed(name, engines) : own
}

/**
 * Defines the test of one cell of the matrix, which prints a line when it passes. A cell that
 * cannot run here is skipped with a message. In CI it fails.
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
