/** Runs one command: arguments, client, confirmation, output and exit code. */
import { CustomerOrderingClient } from '../client.ts'
import { isCustomerOrderingError } from '../errors/classes.ts'
import type { RetryEvent } from '../hooks.ts'
import { normalizeServer, scopeOf } from '../identity/keys.ts'
import { VERSION } from '../version.ts'
import { COMMANDS, type Command, type Task } from './commands.ts'
import { completion } from './completion.ts'
import { help, OTHERS } from './help.ts'
import { type OpenStore, openStore, orFailure, secretsIn, storeName } from './open-store.ts'
import {
  type Flags,
  OPTIONS,
  type OptionName,
  readArguments,
  unknown,
  wholeNumber,
  withEnvironment,
} from './options.ts'
import { printLines } from './print.ts'
import {
  EXIT,
  type Exit,
  Failure,
  hide,
  Interrupted,
  type Terminal,
  UsageError,
  visible,
} from './terminal.ts'

export const COMMON: readonly OptionName[] = [
  'timeout',
  'total-timeout',
  'allow-insecure-http',
  'json',
  'yes',
  'version',
  'help',
]

/** The command must not remove old records: only the user's program knows how long to keep them. */
const KEEP_ALL = { created: Number.MAX_SAFE_INTEGER, rejected: Number.MAX_SAFE_INTEGER }

type Say = (message: string) => void

/** What messages must hide, and how they name the order. */
interface Wording {
  readonly secrets: string[]
  order: string
}

const WRONG_USE: ReadonlySet<string> = new Set(['configuration', 'invalid_request'])

export async function run(argv: readonly string[], terminal: Terminal): Promise<Exit> {
  const wording: Wording = { secrets: [], order: 'REFERENCE' }
  const say: Say = (message) =>
    terminal.err(
      `customer-ordering-sdk: ${visible(hide(inOptions(message, wording.order), wording.secrets))}\n`,
    )
  try {
    return await runCommand(argv, terminal, wording, say)
  } catch (error) {
    const { reason } = terminal.stop
    if (reason instanceof Interrupted && reason.exit === EXIT.outputClosed) return reason.exit
    const known = error instanceof UsageError || error instanceof Failure || isCustomerOrderingError(error)
    say(known ? error.message : `unexpected error: ${String(error)}`)
    if (reason instanceof Interrupted) return reason.exit
    const wrong = error instanceof UsageError || (isCustomerOrderingError(error) && WRONG_USE.has(error.code))
    return wrong ? EXIT.wrongUse : EXIT.failed
  }
}

async function runCommand(
  argv: readonly string[],
  terminal: Terminal,
  wording: Wording,
  say: Say,
): Promise<Exit> {
  const { flags: given, words } = readArguments(argv, OPTIONS)
  if (given.version) return show(terminal, `${VERSION}\n`)
  const [first = '', second] = words
  const subs = Object.keys(COMMANDS).filter((each) => each.startsWith(`${first} `))
  if (given.help && second === undefined && subs.length > 0)
    return show(terminal, subs.map((each) => help(COMMON, each)).join('\n'))
  const [name, command] = commandOf(words)
  if (given.help) return show(terminal, help(COMMON, name))
  if (words[0] === 'completion') return show(terminal, completion(COMMON, words[1]))
  if (command === undefined) {
    if (name !== '') throw new UsageError(`${name} takes no options or arguments.`)
    terminal.err(help(COMMON))
    return EXIT.wrongUse
  }
  const known = [...command.options, ...COMMON]
  const flags = withEnvironment(given, known, terminal.env)
  const argument = argumentOf(name, command, known, flags, words)
  wording.order = flags.key === undefined ? JSON.stringify(argument) : `--key ${flags.key}`

  const { CUSTOMER_ORDERING_API_KEY: apiKey, CUSTOMER_ORDERING_BASE_URL: baseUrl } = terminal.env
  wording.secrets.push(...[apiKey ?? '', ...secretsIn(flags.store ?? '')].filter(Boolean))
  if (!baseUrl) throw new UsageError('CUSTOMER_ORDERING_BASE_URL is not set. Set it in the environment.')
  if (command.sends && !apiKey)
    throw new UsageError('CUSTOMER_ORDERING_API_KEY is not set. Set it in the environment.')
  const safeRetryWindow = wholeNumber(flags, 'safe-retry-window')
  // There is no default: if the window outlasts the service's memory of keys, a second request
  // could charge an order twice.
  if (name === 'recover' && safeRetryWindow === undefined)
    throw new UsageError(
      'recover requires --safe-retry-window MILLISECONDS. ' +
        'Use the value of your program, or 1200000 if it sets none.',
    )
  const settings = {
    timeout: wholeNumber(flags, 'timeout'),
    totalTimeout: wholeNumber(flags, 'total-timeout'),
    remember: rememberOf(flags),
  }
  if (command.store && flags.store !== undefined && flags.account === undefined)
    throw new UsageError(
      'Name the account that your program passes to its client: --account LABEL, or set CUSTOMER_ORDERING_ACCOUNT.',
    )
  const opened = command.store ? await openStore(terminal, flags.store) : undefined
  try {
    const client = new CustomerOrderingClient({
      ...settings,
      baseUrl,
      apiKey: apiKey || null,
      account: flags.account,
      server: flags.server,
      store: opened?.store,
      safeRetryWindow,
      allowInsecureHttp: flags['allow-insecure-http'],
      retention: KEEP_ALL,
      logger: { debug() {}, info() {}, warn() {}, error() {} },
      hooks: {
        onRetry: (event) => sayWait(say, event),
        onRequest: ({ method, path }) => terminal.progress(visible(`${method} ${path} … `)),
      },
    })
    try {
      if (command.sends) sayWhere(say, baseUrl, flags)
      // First, because resolve can store the first order of a mistyped account, which a later check would find.
      if (opened !== undefined) await checkScope(opened, flags, baseUrl, say)
      const task: Task = { client, flags, name: argument, signal: terminal.stop }
      const question = await command.question?.(task)
      if (question !== undefined && !(await isConfirmed(terminal, flags, question, say)))
        return EXIT.notConfirmed
      return await printLines(command.run(task), { ...command, terminal, say, json: flags.json === true })
    } finally {
      await client.close()
    }
  } finally {
    await opened?.close()
  }
}

/** The client's messages name parameters, but a person at a shell types options. */
function inOptions(message: string, order: string): string {
  return message
    .replace(
      "orders.resolve(name, { as: 'created', orderId, despite: [",
      'resolve --as created --order-id ID despite: [',
    )
    .replace(/orders\.(\w+)\(\)/g, '$1')
    .replace(
      /despite: \[([^\]]*)\](?: \}\))?/,
      (_all, fields: string) => `--despite ${fields.replace(/[' ]/g, '')}`,
    )
    .replace(/^(?:externalOrderId|idempotencyKey) (?=\w)/, () => `${order} `)
}

function show(terminal: Terminal, text: string): Exit {
  terminal.out(text)
  return EXIT.done
}

/** The longest name wins: `orders list` has two words. */
function commandOf(words: readonly string[]): readonly [name: string, command: Command | undefined] {
  for (const count of [2, 1]) {
    const name = words.slice(0, count).join(' ')
    if (Object.hasOwn(COMMANDS, name)) return [name, COMMANDS[name]]
  }
  const [first = ''] = words
  if (first === '' || Object.hasOwn(OTHERS, first)) return [first, undefined]
  const names = [...Object.keys(COMMANDS), ...Object.keys(OTHERS)]
  const sub = names.filter((name) => name.startsWith(`${first} `))
  if (sub.length > 0 && words.length < 2)
    throw new UsageError(`${first} is the first word of: ${sub.join(', ')}.`)
  const given = sub.length > 0 ? words.slice(0, 2).join(' ') : first
  throw unknown('command', JSON.stringify(given), given, names)
}

function argumentOf(
  name: string,
  { argument }: Command,
  known: readonly string[],
  flags: Flags,
  words: readonly string[],
): string {
  const foreign = Object.keys(flags).find((flag) => !known.includes(flag))
  if (foreign !== undefined) throw new UsageError(`${name} has no option --${foreign}; see ${name} --help.`)
  const [given, ...rest] = words.slice(name.split(' ').length)
  const extra = argument === undefined ? given : rest[0]
  if (extra !== undefined)
    throw new UsageError(
      `${name} takes ${argument ? `one ${argument}` : 'no argument'}, but also got ${JSON.stringify(extra)}.`,
    )
  if (argument !== undefined && (given === undefined) === (flags.key === undefined))
    throw new UsageError(
      `${name} requires ${argument === 'ID' ? "the order's ID" : "either the order's REFERENCE or --key KEY"}.`,
    )
  return given ?? ''
}

/** Without this check, a mistyped --account would look like a store without open orders. */
async function checkScope(
  opened: OpenStore,
  { server, account, store: address = '' }: Flags,
  baseUrl: string,
  say: Say,
): Promise<void> {
  const scope = scopeOf(server?.trim() ?? normalizeServer(baseUrl), account?.trim())
  const found = await orFailure(foundScopes(opened, scope), `Cannot read the store ${storeName(address)}`)
  if (found.includes(scope)) return
  if (found.length === 0) {
    // Not a failure: a store is empty until the first order.
    say(
      `The store ${storeName(address)} has no orders of any account. ` +
        `Check --store if there should be orders of [server, account] ${scope}.`,
    )
    return
  }
  const shown = found.slice(0, 5).join(', ') + (found.length > 5 ? ', …' : '')
  throw new UsageError(
    `The store has no orders of [server, account] ${scope}, only of ${shown}. ` +
      'Check --server and --account.',
  )
}

/** Lists the other scopes only if this one has no orders: listing reads the whole store. */
async function foundScopes({ store, scopes }: OpenStore, scope: string): Promise<readonly string[]> {
  const { rows, next } = await store.list(scope, { limit: 1 })
  return rows.length > 0 || next !== undefined ? [scope] : await scopes()
}

function rememberOf({ remember }: Flags): 'id' | 'order' | undefined {
  if (remember === undefined || remember === 'id' || remember === 'order') return remember
  throw new UsageError('--remember must be id or order.')
}

function sayWhere(say: Say, baseUrl: string, { account, server, store }: Flags): void {
  const host = hostOf(baseUrl)
  const places = [`service ${baseUrl}`, account && `account ${account}`, store && `store ${storeName(store)}`]
  say(places.filter(Boolean).join(', '))
  // A label without a dot names no host.
  if (store !== undefined && server?.includes('.') && hostOf(server) !== host)
    say(
      `warning: --server names ${hostOf(server)}, but requests go to ${host}. ` +
        'If these are two services, orders of one may be bought at the other.',
    )
}

function hostOf(address: string): string {
  return URL.parse(address.includes('://') ? address : `https://${address}`)?.host ?? address
}

function sayWait(say: Say, { delayMs, reason, status, method, path }: RetryEvent): void {
  if (delayMs < 1000) return
  say(`waiting ${Math.round(delayMs / 1000)} s (${status ?? reason}): ${method} ${path}`)
}

async function isConfirmed(terminal: Terminal, flags: Flags, question: string, say: Say): Promise<boolean> {
  if (flags.yes) return true
  if (terminal.interactive)
    return /^y(es)?$/i.test((await terminal.ask(`${visible(question)} Continue? [y/N] `)).trim())
  say(`${question} Nothing was sent or changed: no terminal can ask for confirmation. Add --yes to confirm.`)
  return false
}
