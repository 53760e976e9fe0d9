import { parseArgs } from 'node:util'
import { CustomerOrderingClient } from '../client.ts'
import { isCustomerOrderingError } from '../errors/classes.ts'
import { normalizeServer, scopeOf } from '../orders/identity.ts'
import { nearestName } from '../settings/readers.ts'
import { VERSION } from '../version.ts'
import { ACTIONS, type Action, type Flags } from './actions.ts'
import { type OpenStore, openStore } from './open-store.ts'
import { EXIT, type Exit, hide, plain, type Terminal, UsageError } from './terminal.ts'

const USAGE = `customer-ordering-sdk: inspect and recover the orders of your program

  customer-ordering-sdk COMMAND [flags]

${Object.entries({ sandbox: { about: 'serve the in-memory sandbox: sandbox --help' }, ...ACTIONS })
  .map(([name, { about }]) => `  ${name.padEnd(12)}${about}`)
  .join('\n')}

Flags of the store
  --sqlite PATH       the file of your SqliteStore
  --postgres URL      the database of your PostgresStore; requires pg in your project
  --redis URL         the server of your RedisStore; requires redis or ioredis in your project
  --account LABEL     the account that your program sets; required with a store
  --server LABEL      the server that your program sets, if any
  --safe-retry-window MILLISECONDS
                      the value your program sets, or 1200000 if none; required for recover

  --remember id       store only the id, status and amount of an order; set it if your program does
  --allow-insecure-http
                      allow an http address on a private network

Flags of some commands
  --key KEY           the order's Idempotency-Key, instead of its reference
  --as STATE          resolve: created (with --order-id ID) or abandoned
  --order-id ID       resolve: the id of the order that the service created
  --take-over         recover: do not wait for the leases of other calls to end
  --since TIME        reconcile: skip older records (TIME: 2026-01-31 or 2026-01-31T12:00:00Z)

  --json              print one JSON value per line, for programs
  --yes               do not ask for confirmation before an action that can cost money
  --version, --help

CUSTOMER_ORDERING_BASE_URL and CUSTOMER_ORDERING_API_KEY are read from the environment.
Exit codes: 0 done, 1 failed, 2 usage error, 3 orders need attention, 4 not confirmed.
`

const OPTIONS = {
  sqlite: { type: 'string' },
  postgres: { type: 'string' },
  redis: { type: 'string' },
  account: { type: 'string' },
  server: { type: 'string' },
  remember: { type: 'string' },
  'allow-insecure-http': { type: 'boolean' },
  'safe-retry-window': { type: 'string' },
  key: { type: 'string' },
  as: { type: 'string' },
  'order-id': { type: 'string' },
  'take-over': { type: 'boolean' },
  since: { type: 'string' },
  json: { type: 'boolean' },
  yes: { type: 'boolean' },
  version: { type: 'boolean' },
  help: { type: 'boolean' },
} as const

const COMMON_FLAGS = ['json', 'yes', 'version', 'help', 'account', 'server', 'allow-insecure-http']
const STORE_FLAGS = ['sqlite', 'postgres', 'redis', 'safe-retry-window', 'remember']

/** The command must not remove old records: only the user's program knows how long to keep them. */
const KEEP_ALL = { created: Number.MAX_SAFE_INTEGER, rejected: Number.MAX_SAFE_INTEGER }

export async function run(argv: readonly string[], terminal: Terminal): Promise<Exit> {
  const secrets: string[] = []
  try {
    return await runCommand(argv, terminal, secrets)
  } catch (error) {
    const known = error instanceof UsageError || isCustomerOrderingError(error)
    const message = known ? error.message : `unexpected error: ${String(error)}`
    terminal.err(`customer-ordering-sdk: ${plain(hide(message, secrets))}\n`)
    const wrong = error instanceof UsageError || (isCustomerOrderingError(error) && WRONG_USE.has(error.code))
    return wrong ? EXIT.wrongUse : EXIT.failed
  }
}

const WRONG_USE: ReadonlySet<string> = new Set(['configuration', 'invalid_request'])

async function runCommand(argv: readonly string[], terminal: Terminal, secrets: string[]): Promise<Exit> {
  const { flags, name, reference } = read(argv)
  if (flags.version) return say(terminal, `${VERSION}\n`)
  if (flags.help || name === undefined) return say(terminal, USAGE, name === undefined && !flags.help)
  const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined
  if (action === undefined) throw new UsageError(`There is no command ${JSON.stringify(name)}; see --help.`)
  check(name, action, flags, reference)

  const { CUSTOMER_ORDERING_API_KEY: apiKey, CUSTOMER_ORDERING_BASE_URL: baseUrl } = terminal.env
  if (apiKey) secrets.push(apiKey)
  for (const url of [flags.postgres, flags.redis]) secrets.push(...passwordsIn(url))
  if (!baseUrl) throw new UsageError('CUSTOMER_ORDERING_BASE_URL is not set. Set it in the environment.')
  if (action.sendsRequests && !apiKey)
    throw new UsageError('CUSTOMER_ORDERING_API_KEY is not set. Set it in the environment.')
  const safeRetryWindow = windowOf(flags)
  const remember = rememberOf(flags)
  // There is no default: if the window outlasts the service's memory of keys, a second request
  // could charge an order twice.
  if (name === 'recover' && safeRetryWindow === undefined)
    throw new UsageError(
      'recover requires --safe-retry-window MILLISECONDS. ' +
        'Use the value of your program, or 1200000 if it sets none.',
    )
  const opened = action.needsStore ? await openStore(terminal, flags) : undefined
  try {
    const client = new CustomerOrderingClient({
      baseUrl,
      apiKey: apiKey || null,
      ...(flags.account !== undefined && { account: flags.account }),
      ...(flags.server !== undefined && { server: flags.server }),
      ...(opened !== undefined && { store: opened.store }),
      ...(safeRetryWindow !== undefined && { safeRetryWindow }),
      ...(remember !== undefined && { remember }),
      ...(flags['allow-insecure-http'] && { allowInsecureHttp: true }),
      retention: KEEP_ALL,
      logger: { debug() {}, info() {}, warn() {}, error() {} },
    })
    try {
      const question = await action.question?.(client, flags)
      if (question !== undefined && !(await isConfirmed(terminal, flags, question))) return EXIT.notConfirmed
      const exit = await action.run({ client, terminal, flags, reference })
      if (opened !== undefined) await checkScope(opened, scopeOfFlags(flags, baseUrl))
      return exit
    } finally {
      await client.close()
    }
  } finally {
    await opened?.close()
  }
}

interface FlagToken {
  readonly name: string
  /** The name with its dashes, as the user wrote it. */
  readonly rawName: string
  readonly value: string | undefined
  /** True for `--name=value`. */
  readonly inlineValue: boolean | undefined
}

function read(argv: readonly string[]): {
  readonly flags: Flags
  readonly name: string | undefined
  readonly reference: string | undefined
} {
  const given = { args: [...argv], options: OPTIONS, allowPositionals: true }
  for (const token of parseArgs({ ...given, strict: false, tokens: true }).tokens)
    if (token.kind === 'option') checkFlag(token)
  const { values, positionals } = parseArgs(given)
  const [name, reference, ...rest] = positionals
  if (rest.length > 0)
    throw new UsageError(`A command takes at most one reference, but also got ${JSON.stringify(rest[0])}.`)
  return { flags: values, name, reference }
}

const TYPES: ReadonlyMap<string, 'string' | 'boolean'> = new Map(
  Object.entries(OPTIONS).map(([name, { type }]) => [name, type]),
)

/** Rejects what `parseArgs` rejects, but with one-line messages that suggest a similar flag. */
function checkFlag({ name, rawName, value, inlineValue }: FlagToken): void {
  const type = TYPES.get(name)
  if (type === undefined) {
    const nearest = nearestName(name, [...TYPES.keys()])
    throw new UsageError(
      `There is no flag ${rawName}${nearest && ` (did you mean --${nearest}?)`}; see --help.`,
    )
  }
  if (type === 'boolean' && value !== undefined)
    throw new UsageError(`The flag ${rawName} takes no value; see --help.`)
  // In `--account --json`, the value of --account is missing.
  if (type === 'string' && (value === undefined || (!inlineValue && value.startsWith('-'))))
    throw new UsageError(
      `The flag ${rawName} requires a value; see --help. ` +
        `Write ${rawName}=VALUE for a value that begins with a dash.`,
    )
}

function check(name: string, action: Action, flags: Flags, reference: string | undefined): void {
  const known = [...COMMON_FLAGS, ...(action.needsStore ? STORE_FLAGS : []), ...action.ownFlags]
  const foreign = Object.keys(flags).find((flag) => !known.includes(flag))
  if (foreign !== undefined) throw new UsageError(`${name} has no flag --${foreign}; see --help.`)
  if (!action.namesOrder && reference !== undefined)
    throw new UsageError(`${name} takes no reference, but got ${JSON.stringify(reference)}.`)
  if (action.namesOrder && (reference === undefined) === (flags.key === undefined))
    throw new UsageError(`${name} requires either the order's reference or --key KEY.`)
}

function scopeOfFlags({ server, account }: Flags, baseUrl: string): string {
  return scopeOf(server?.trim() ?? normalizeServer(baseUrl), account?.trim())
}

/** Without this check, a mistyped --account would look like a store without open orders. */
async function checkScope({ store, scopes }: OpenStore, scope: string): Promise<void> {
  const { rows, next } = await store.list(scope, { limit: 1 })
  if (rows.length > 0 || next !== undefined) return
  const found = await scopes()
  if (found.length === 0 || found.includes(scope)) return
  const shown = found.slice(0, 5).join(', ') + (found.length > 5 ? ', …' : '')
  throw new UsageError(
    `The store has no orders of [server, account] ${scope}, only of ${shown}. ` +
      'Check --server and --account.',
  )
}

function windowOf({ 'safe-retry-window': given }: Flags): number | undefined {
  if (given === undefined) return undefined
  if (!/^\d{1,15}$/.test(given))
    throw new UsageError('--safe-retry-window must be a whole number of milliseconds, such as 1200000.')
  return Number(given)
}

function rememberOf({ remember }: Flags): 'id' | 'order' | undefined {
  if (remember === undefined || remember === 'id' || remember === 'order') return remember
  throw new UsageError('--remember must be id or order.')
}

function passwordsIn(url: string | undefined): string[] {
  const password = url === undefined ? undefined : URL.parse(url)?.password
  return password ? [password, decodeURIComponent(password)] : []
}

function say(terminal: Terminal, text: string, wrong = false): Exit {
  if (wrong) terminal.err(text)
  else terminal.out(text)
  return wrong ? EXIT.wrongUse : EXIT.done
}

async function isConfirmed(terminal: Terminal, flags: Flags, question: string): Promise<boolean> {
  if (flags.yes) return true
  if (!terminal.interactive) {
    terminal.err(
      `customer-ordering-sdk: ${plain(question)} ` +
        'Nothing was sent or changed: no terminal can ask for confirmation. Add --yes to confirm.\n',
    )
    return false
  }
  return /^y(es)?$/i.test((await terminal.ask(`${plain(question)} Continue? [y/N] `)).trim())
}
