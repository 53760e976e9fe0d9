/**
 * Runs the tests of an example that is a package of its own, as its `npm test` says:
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
const { status } = spawnSync('npm', ['test', '--silent'], { cwd: folder, stdio: 'inherit' })
process.exitCode = status ?? 1
