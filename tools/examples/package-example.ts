/**
 * Runs an example that has its own package:
 *
 * node tools/examples/package-example.ts hono-backend
 *
 * Without a script, it works as an integrator does: it copies the folder out of the project,
 * installs its packages and the packed file of this package, and runs `npm test`. The copy cannot
 * access the project's files. CI runs this form. With the name of a script, it runs that script in
 * the example's folder, with the current build.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import '../build/links.mjs'
import { ensureBuilt, root } from '../build/ensure-built.ts'
import { install } from '../programs/install.ts'

const [name = '', script, ...parameters] = process.argv.slice(2)
const folder = join(root, 'examples', name)
if (!/^[\w-]+$/.test(name) || !existsSync(join(folder, 'package.json'))) {
  process.stderr.write(`Unknown example, or one without its own package: ${JSON.stringify(name)}.\n`)
  process.exit(2)
}

ensureBuilt()
if (script === undefined) testCopy()
else {
  install('examples')
  process.exitCode = npm(folder, 'run', '-s', script, '--', ...parameters)
}

function testCopy(): void {
  const place = mkdtempSync(join(tmpdir(), 'example-'))
  try {
    const copy = join(place, name)
    const made = ['node_modules', 'dist']
    cpSync(folder, copy, { recursive: true, filter: (path) => !made.includes(basename(path)) })
    const pack = ['pack', '--silent', '--ignore-scripts', '--pack-destination', place]
    const file = execFileSync('npm', pack, { cwd: root, encoding: 'utf8' }).trim()
    const install = ['install', '--silent', '--ignore-scripts', '--prefer-offline', join(place, file)]
    process.exitCode = npm(copy, ...install) || npm(copy, 'test', '--silent')
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}

function npm(cwd: string, ...parameters: readonly string[]): number {
  return spawnSync('npm', parameters, { cwd, stdio: 'inherit' }).status ?? 1
}
