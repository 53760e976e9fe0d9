/**
 * Checks the types of an example that is a package of its own, and runs its tests, as its integrator would:
 *
 *     node scripts/test-example.ts hono-backend
 *
 * The package is installed when it is not. Each test starts its own sandbox.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ensureBuilt, root } from './ensure-built.ts'
import { installExample } from './install-example.ts'

const name = process.argv[2] ?? ''
const folder = join(root, 'examples', name)
if (!/^[\w-]+$/.test(name) || !existsSync(join(folder, 'package.json'))) {
  process.stderr.write(`There is no example with a package of its own named ${JSON.stringify(name)}.\n`)
  process.exit(2)
}

ensureBuilt()
installExample(folder)
// What runs in Node and what runs elsewhere have a configuration each.
for (const project of ['tsconfig.json', 'test/tsconfig.json'])
  if (existsSync(join(folder, project))) run(join(root, 'node_modules/typescript/bin/tsc'), '-p', project)
run('--disable-warning=ExperimentalWarning', '--test')

function run(...parameters: readonly string[]): void {
  const { status } = spawnSync(process.execPath, parameters, { cwd: folder, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}
