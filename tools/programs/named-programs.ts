/**
 * Shared by `npm run verify` and `npm run example`, which take a name and
 * arguments for the named program.
 */
import { spawnSync } from 'node:child_process'
import { root } from '../build/ensure-built.ts'

/** Programs by their names. */
export type Programs = Readonly<Record<string, { readonly about: string; readonly commands: Commands }>>

/** Commands that run one after the other until one fails. The last one gets the arguments. */
export type Commands = readonly (readonly string[])[]

/** A command that runs a file of this project. */
export const node = (...parameters: readonly string[]): readonly string[] => [process.execPath, ...parameters]

/**
 * Reads the name and the arguments of this process. Without a name, prints all names and ends the
 * process.
 */
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
    process.stderr.write(`Unknown name: ${JSON.stringify(name)}.\n\n${usage}\n`)
    process.exit(2)
  }
  return { name, rest }
}

/** Runs a program in the project's folder. Returns its exit code. */
export function runCommands(commands: Commands, rest: readonly string[] = []): number {
  for (const [index, [program = '', ...parameters]] of commands.entries()) {
    const given = index === commands.length - 1 ? [...parameters, ...rest] : parameters
    const { status } = spawnSync(program, given, { cwd: root, stdio: 'inherit' })
    if (status !== 0) return status ?? 1
  }
  return 0
}
