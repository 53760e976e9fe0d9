/**
 * Reads the arguments of this repository's programs. Rejects an invalid count or an unknown flag:
 * otherwise, a program could try nothing and report success.
 */
import { type ParseArgsConfig, parseArgs } from 'node:util'

type Options = NonNullable<ParseArgsConfig['options']>
type Config<O extends Options> = { args: string[]; options: O; allowPositionals: true }
type Given<O extends Options> = ReturnType<typeof parseArgs<Config<O>>>

/** The arguments that a program accepts. */
export interface Program<O extends Options> {
  /** Its forms of invocation, one on each line. */
  readonly usage: string
  /** Maximum number of arguments that are not options. Default: 0. */
  readonly positionals?: number
  readonly options: O
}

/** An argument that the program does not accept. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/**
 * Reads arguments.
 * @throws {UsageError} if the program does not accept an argument, or `read` rejects one
 */
export function parseArguments<O extends Options, T>(
  { positionals: most = 0, options }: Program<O>,
  args: readonly string[],
  read: (given: Given<O>) => T,
): T {
  const given = parsed(args, options)
  const surplus = given.positionals.slice(most)
  if (surplus.length > 0) throw new UsageError(`Unknown arguments: ${surplus.join(' ')}.`)
  return read(given)
}

function parsed<O extends Options>(args: readonly string[], options: O): Given<O> {
  try {
    return parseArgs<Config<O>>({ args: [...args], options, allowPositionals: true })
  } catch (error) {
    // parseArgs throws TypeErrors about invalid arguments.
    if (error instanceof TypeError) throw new UsageError(error.message, { cause: error })
    throw error
  }
}

/**
 * Reads the arguments of this process. `--help` prints the usage and ends the process. An invalid
 * argument ends it with the usage and exit code 2.
 */
export function readArguments<O extends Options, T>(program: Program<O>, read: (given: Given<O>) => T): T {
  const args = process.argv.slice(2)
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(`${program.usage}\n`)
    process.exit(0)
  }
  try {
    for (const name of Object.keys(program.options))
      if (process.env[`npm_config_${name.replaceAll('-', '_')}`] !== undefined)
        throw new UsageError(`npm read --${name} as its own option: write -- before it.`)
    return parseArguments(program, args, read)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    process.stderr.write(`${error.message}\n\n${program.usage}\n`)
    process.exit(2)
  }
}

/** 1 or more. Underscores may separate digits. */
export function positiveInteger(name: string, text: string): number {
  return integer(name, text, 1)
}

/** 0 or more. Underscores may separate digits. */
export function wholeNumber(name: string, text: string): number {
  return integer(name, text, 0)
}

function integer(name: string, text: string, least: number): number {
  const value = /^\d+(_\d+)*$/.test(text) ? Number(text.replaceAll('_', '')) : Number.NaN
  if (!Number.isSafeInteger(value) || value < least)
    throw new UsageError(`${name} must be an integer of ${least} or more (got "${text}").`)
  return value
}

/** A decimal, 0 or more. */
export function decimal(name: string, text: string): number {
  if (!/^\d+(\.\d+)?$/.test(text)) throw new UsageError(`${name} must be a number (got "${text}").`)
  return Number(text)
}

/** A decimal above 0. */
export function positive(name: string, text: string): number {
  const value = decimal(name, text)
  if (value === 0) throw new UsageError(`${name} must be more than 0.`)
  return value
}

/** One of some names. */
export function oneOf<Name extends string>(name: string, text: string, names: readonly Name[]): Name {
  const found = names.find((each) => each === text)
  if (found === undefined)
    throw new UsageError(`${name} must be one of: ${names.join('; ')} (got "${text}").`)
  return found
}
