/**
 * Runs a script of an example that is a package of its own, as its integrator would:
 *
 *     node scripts/package-example.ts browser-checkout dev
 *
 * Without the name of a script it is `check`, which is what CI runs. The package is installed when it is not.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ensureBuilt, root } from './ensure-built.ts'
import { installExample } from './install-example.ts'

const [name = '', script = 'check', ...parameters] = process.argv.slice(2)
const folder = join(root, 'examples', name)
if (!/^[\w-]+$/.test(name) || !existsSync(join(folder, 'package.json'))) {
  process.stderr.write(`There is no example with a package of its own named ${JSON.stringify(name)}.\n`)
  process.exit(2)
}

ensureBuilt()
installExample(folder)
const { status } = spawnSync('npm', ['run', '-s', script, '--prefix', folder, '--', ...parameters], {
  stdio: 'inherit',
})
process.exitCode = status ?? 1
