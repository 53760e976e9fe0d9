/** The options of the command: one table for parsing, help, completion and the environment. */
import { parseArgs } from 'node:util'
import { nearestName } from '../settings/readers.ts'
import { UsageError } from './terminal.ts'

export interface Option {
  readonly type: 'string' | 'boolean'
  readonly value?: string
  readonly about: string
  /** Read from `CUSTOMER_ORDERING_…` if the option is not given. */
  readonly env?: true
}

export const OPTIONS = {
  store: {
    type: 'string',
    value: 'ADDRESS',
    env: true,
    about: 'the store of your program: the path of a SQLite file, postgres://…, mysql://… or redis://…',
  },
  account: { type: 'string', value: 'LABEL', env: true, about: 'the account that your program sets' },
  server: { type: 'string', value: 'LABEL', env: true, about: 'the server that your program sets, if any' },
  remember: {
    type: 'string',
    value: 'id',
    env: true,
    about: 'store only id, status and amount of an order; set it if your program does',
  },
  'safe-retry-window': {
    type: 'string',
    value: 'MS',
    env: true,
    about: 'the value that your program sets, or 1200000 if none; recover requires it',
  },
  timeout: { type: 'string', value: 'MS', env: true, about: 'limit of one request (default 30000)' },
  'total-timeout': {
    type: 'string',
    value: 'MS',
    env: true,
    about: 'limit of a call with its retries (default 120000)',
  },
  'allow-insecure-http': { type: 'boolean', about: 'allow an http address on a private network' },
  key: { type: 'string', value: 'KEY', about: "the order's Idempotency-Key, instead of its reference" },
  as: { type: 'string', value: 'STATE', about: 'created (with --order-id) or abandoned' },
  'order-id': { type: 'string', value: 'ID', about: 'the id of the order that the service created' },
  despite: {
    type: 'string',
    value: 'FIELDS',
    about: 'the fields in which that order may differ, as an error named them: quantity,target',
  },
  'take-over': { type: 'boolean', about: 'do not wait for calls of other processes to end' },
  since: {
    type: 'string',
    value: 'TIME',
    about: 'skip older records: 2026-01-31 or 2026-01-31T12:00:00Z',
  },
  limit: { type: 'string', value: 'N', about: 'stop after N orders' },
  'source-system': { type: 'string', value: 'NAME', about: 'list only orders of this source system' },
  all: { type: 'boolean', about: 'also print the orders that match' },
  json: { type: 'boolean', about: 'print one JSON value per line, for programs' },
  yes: { type: 'boolean', about: 'do not ask before an action that can cost money' },
  version: { type: 'boolean', about: 'print the version' },
  help: { type: 'boolean', about: 'print this help; with a command, the help of that command' },
} as const

export type OptionName = keyof typeof OPTIONS

export type Options = Readonly<Record<string, Option>>

export type FlagsOf<Table extends Options> = {
  readonly [Name in keyof Table]?: (Table[Name]['type'] extends 'boolean' ? boolean : string) | undefined
}
export type Flags = FlagsOf<typeof OPTIONS>

export const environmentName = (option: string): string =>
  `CUSTOMER_ORDERING_${option.replaceAll('-', '_').toUpperCase()}`

/** Rejects what `parseArgs` rejects, but with one-line messages that suggest a similar option. */
export function readArguments<Table extends Options>(
  argv: readonly string[],
  options: Table,
): { readonly flags: FlagsOf<Table>; readonly words: readonly string[] } {
  const given = { args: [...argv], options, allowPositionals: true }
  for (const token of parseArgs({ ...given, strict: false, tokens: true }).tokens) {
    if (token.kind !== 'option') continue
    const { name, rawName, value, inlineValue } = token
    const type = Object.hasOwn(options, name) ? options[name]?.type : undefined
    if (type === undefined) throw unknown('option', rawName, name, Object.keys(options), '--')
    if (type === 'boolean' && value !== undefined)
      throw new UsageError(`The option ${rawName} takes no value; see --help.`)
    // In `--account --json`, the value of --account is missing.
    if (type === 'string' && (value === undefined || (!inlineValue && value.startsWith('-'))))
      throw new UsageError(
        `The option ${rawName} requires a value; see --help. ` +
          `Write ${rawName}=VALUE for a value that begins with a dash.`,
      )
  }
  const { values, positionals } = parseArgs(given)
  // The cast is safe: each value has the type that its option names.
  return { flags: values as FlagsOf<Table>, words: positionals }
}

export function unknown(
  what: string,
  given: string,
  name: string,
  known: readonly string[],
  prefix = '',
): UsageError {
  const nearest = nearestName(name, known)
  return new UsageError(
    `There is no ${what} ${given}${nearest && ` (did you mean ${prefix}${nearest}?)`}; see --help.`,
  )
}

/** Passwords and labels in the environment do not appear in a list of processes. */
export function withEnvironment(
  flags: Flags,
  known: readonly OptionName[],
  env: Readonly<Record<string, string | undefined>>,
): Flags {
  const values = known
    .filter((name) => flags[name] === undefined && 'env' in OPTIONS[name])
    .map((name) => [name, env[environmentName(name)]] as const)
    .filter(([, value]) => value !== undefined && value !== '')
  return { ...flags, ...Object.fromEntries(values) }
}

export function wholeNumber(
  flags: Flags,
  name: 'limit' | 'safe-retry-window' | 'timeout' | 'total-timeout',
): number | undefined {
  const given = flags[name]
  if (given === undefined || /^\d{1,15}$/.test(given)) return given === undefined ? given : Number(given)
  const example = name === 'limit' ? ', such as 20' : ' of milliseconds, such as 1200000'
  throw new UsageError(`--${name} must be a whole number${example}.`)
}
