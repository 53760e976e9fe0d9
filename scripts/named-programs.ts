/** What `npm run verify`, `npm run bench clients` and `npm run example` have in common: a name, and arguments for what it names. */
import { spawnSync } from 'node:child_process'
import { root } from './ensure-built.ts'

/** Programs by their names. */
export type Programs = Readonly<Record<string, { readonly about: string; readonly commands: Commands }>>

/** Run one after the other until one fails; arguments go to the last. */
export type Commands = readonly (readonly string[])[]

/** A file of this project as a program. */
export const node = (...parameters: readonly string[]): readonly string[] => [process.execPath, ...parameters]

/** The name and arguments that this process was called with. Without a name it prints all of them, and ends. */
export function readName(script: string, programs: Programs): { name: string; rest: readonly string[] } {
  const width = Math.max(...Object.keys(programs).map(({ length }) => length)) + 2
  const usage = [
    `npm run ${script} NAME [ARGUMENT …]    (-- before an option, for example -- --help)`,
    ...Object.entries(programs).map(([name, { about }]) => `  ${name.padEnd(width)}${about}`),
  ].join('\n')
  const [name, ...rest] = process.argv.slice(2)
  if (name === undefined || name === '--help' || name === '-h') {
    process.stdout.write(`${usage}\n`)
    process.exit(0)
  }
  if (!Object.hasOwn(programs, name)) {
    process.stderr.write(`There is nothing named ${JSON.stringify(name)}.\n\n${usage}\n`)
    process.exit(2)
  }
  return { name, rest }
}

/** Runs a program in the project's folder; returns its exit code. */
export function runCommands(commands: Commands, rest: readonly string[] = []): number {
  for (const [index, [program = '', ...parameters]] of commands.entries()) {
    const given = index === commands.length - 1 ? [...parameters, ...rest] : parameters
    const { status } = spawnSync(program, given, { cwd: root, stdio: 'inherit' })
    if (status !== 0) return status ?? 1
  }
  return 0
}
