/**
 * `npm run example NAME` runs `examples/NAME.ts` or a folder. A folder with a `main.ts` runs like a
 * file (run-example.ts). Any other folder is a package (package-example.ts) or contains tests.
 */
import { existsSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import '../build/links.mjs'
import { ensureBuilt, root } from '../build/ensure-built.ts'
import { type Commands, node, type Programs, readName, runCommands } from '../programs/named-programs.ts'

const examples = join(root, 'examples')
const names = readdirSync(examples, { withFileTypes: true })
  .filter((entry) => entry.name.endsWith('.ts') || (entry.isDirectory() && entry.name !== 'node_modules'))
  .map((entry) => basename(entry.name, '.ts'))

const has = (name: string, file: string): boolean => existsSync(join(examples, name, file))

function commandsOf(name: string): Commands {
  // Check the types after the run, which installs the example's own packages.
  if (has(name, 'main.ts'))
    return [
      node('tools/examples/run-example.ts', name),
      node('node_modules/typescript-native/bin/tsc', '-p', join('examples', name)),
    ]
  if (has(name, 'package.json')) return [node('tools/examples/package-example.ts', name)]
  if (existsSync(join(examples, `${name}.ts`))) return [node('tools/examples/run-example.ts', name)]
  return [node('node_modules/vitest/vitest.mjs', 'run', '--root', join('examples', name))]
}

const programs: Programs = Object.fromEntries(
  names.map((name) => [name, { about: `examples/${name}`, commands: commandsOf(name) }]),
)
const { name, rest } = readName('example', {
  ...programs,
  all: { about: 'all of them, one after the other', commands: [] },
})
ensureBuilt()
for (const each of name === 'all' ? names : [name]) {
  const status = runCommands(programs[each]?.commands ?? [], rest)
  if (status !== 0) process.exit(status)
}
