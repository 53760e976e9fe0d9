/**
 * What the programs of this repository are called with. A count that is none, or a flag that nobody knows, is refused: a
 * program that took it for nothing would try nothing, and say that nothing was wrong.
 */
import { type ParseArgsConfig, parseArgs } from 'node:util'

type Options = NonNullable<ParseArgsConfig['options']>
type Config<O extends Options> = { args: string[]; options: O; allowPositionals: true }
type Given<O extends Options> = ReturnType<typeof parseArgs<Config<O>>>

/** What a program takes. */
export interface Program<O extends Options> {
  /** How it is called, one form a line. */
  readonly usage: string
  /** How many arguments there may be that are no options; default none. */
  readonly positionals?: number
  readonly options: O
}

/** An argument that the program does not take. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/**
 * Reads arguments.
 * @throws {UsageError} if there are others than the program takes, or one that `read` refuses
 */
export function parseArguments<O extends Options, T>(
  { positionals: most = 0, options }: Program<O>,
  args: readonly string[],
  read: (given: Given<O>) => T,
): T {
  const given = parsed(args, options)
  const surplus = given.positionals.slice(most)
  if (surplus.length > 0) throw new UsageError(`Nothing is known of ${surplus.join(' ')}.`)
  return read(given)
}

function parsed<O extends Options>(args: readonly string[], options: O): Given<O> {
  try {
    return parseArgs<Config<O>>({ args: [...args], options, allowPositionals: true })
  } catch (error) {
    // What parseArgs throws are TypeErrors about the arguments.
    if (error instanceof TypeError) throw new UsageError(error.message, { cause: error })
    throw error
  }
}

/**
 * Reads the arguments of this process. `--help` prints the usage and ends it; what the program does not take ends it with
 * the usage and exit code 2.
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
        throw new UsageError(`npm took --${name} for an option of its own: write -- before it.`)
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
    throw new UsageError(`${name} is an integer of ${least} or more, and not "${text}".`)
  return value
}

/** A decimal, 0 or more. */
export function decimal(name: string, text: string): number {
  if (!/^\d+(\.\d+)?$/.test(text)) throw new UsageError(`${name} is a number, and not "${text}".`)
  return Number(text)
}

/** A decimal above 0. */
export function positive(name: string, text: string): number {
  const value = decimal(name, text)
  if (value === 0) throw new UsageError(`${name} is more than 0.`)
  return value
}

/** One of some names. */
export function oneOf<Name extends string>(name: string, text: string, names: readonly Name[]): Name {
  const found = names.find((each) => each === text)
  if (found === undefined)
    throw new UsageError(`${name} is "${text}", and has to be one of: ${names.join('; ')}.`)
  return found
}
