import { execFileSync } from 'node:child_process'
import { existsSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../build/ensure-built.ts'

/** Installs the packages of an example's own package.json, and links this package. */
export function installExample(folder: string): void {
  const modules = join(folder, 'node_modules')
  if (!existsSync(modules)) execFileSync('npm', ['ci', '--ignore-scripts', '--prefix', folder])
  const own = join(modules, 'customer-ordering-sdk')
  if (!existsSync(own)) symlinkSync(root, own, 'dir')
}
