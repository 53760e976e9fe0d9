/** `customer-ordering-sdk sandbox`: serves a sandbox until a signal ends it. */
import { accessSync, constants, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { type SandboxServer, serveSandbox } from '../sandbox/http/server.ts'
import { createSandbox, type Sandbox } from '../sandbox/sandbox.ts'
import { isPreset, type SandboxPreset, sandboxPresets } from '../sandbox/service/behaviour.ts'
import { parseFaultRules } from '../sandbox/service/fault-rules.ts'
import { parseJson } from '../sandbox/service/json.ts'
import type { SandboxOptions } from '../sandbox/service/options.ts'
import type { SandboxRequest } from '../sandbox/service/reply.ts'
import { readState } from '../sandbox/service/state.ts'
import { optionLines } from './help.ts'
import { readArguments } from './options.ts'
import { UsageError, visible } from './terminal.ts'

const PRESETS = Object.keys(sandboxPresets).join(', ')

const OPTIONS = {
  port: { type: 'string', value: 'N', about: 'port to listen on, 0 for any free port (default 4010)' },
  host: { type: 'string', value: 'NAME', about: 'address to listen on (default 127.0.0.1)' },
  seed: { type: 'string', value: 'N', about: 'seed for ids, shuffled lists and random faults (default 1)' },
  preset: {
    type: 'string',
    value: 'NAME',
    about: `what the API document leaves open:\n${PRESETS.replace(/(.{60,}?), /g, '$1,\n')}`,
  },
  faults: { type: 'string', value: 'FILE', about: 'a list of fault rules in JSON' },
  state: {
    type: 'string',
    value: 'FILE',
    about: 'load the state from this file if it exists, and save it on exit',
  },
  balance: {
    type: 'string',
    value: 'N',
    about: 'balance of each of the two wallets in minor currency units (default 1000000)',
  },
  'api-key': {
    type: 'string',
    value: 'TEXT',
    about: 'API key of the personal customer (default: derived from the seed)',
  },
  cors: { type: 'boolean', about: 'allow web pages from any origin to call the service' },
  'no-control': { type: 'boolean', about: 'serve neither the live page nor the control API' },
  control: { type: 'boolean', about: 'serve both even on an address that other machines can reach' },
  quiet: { type: 'boolean', about: 'print only the URL and the API key' },
  help: { type: 'boolean', about: 'print this help' },
} as const

function reading<T>(what: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw new UsageError(`${what}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function integer(flag: string, text: string | undefined, fallback: number, max: number): number {
  if (text === undefined) return fallback
  if (/^\d+$/.test(text) && Number(text) <= max) return Number(text)
  throw new UsageError(`${flag}: expected a whole number from 0 to ${max}, got ${JSON.stringify(text)}`)
}

function presetNamed(name: string): SandboxPreset {
  if (isPreset(name)) return name
  throw new UsageError(`--preset: expected one of ${PRESETS}, got ${JSON.stringify(name)}`)
}

function logLine({
  method,
  path,
  status,
  delivery,
  charged,
  faults,
  idempotencyKey,
  apiKeyId,
}: SandboxRequest): string {
  const notes = [
    delivery === 'complete' || delivery === 'drop' ? '' : delivery,
    charged ? 'charged' : '',
    faults.length === 0 ? '' : `fault ${faults.join(' + ')}`,
    idempotencyKey === null ? '' : `key ${idempotencyKey}`,
    apiKeyId ?? 'no API key',
  ]
  return `${method} ${path} ${status} ${notes.filter((note) => note !== '').join(', ')}`
}

function printLine(line: string): void {
  process.stdout.write(`${visible(line)}\n`)
}

async function start(argv: string[]): Promise<void> {
  const { flags, words } = readArguments(argv, OPTIONS)
  if (words.length > 0) throw new UsageError(`there is no argument ${JSON.stringify(words[0])}; see --help`)
  if (flags.help) {
    const about = 'an in-memory Customer Ordering API for development and tests'
    process.stdout.write(`customer-ordering-sdk sandbox: ${about}\n\n${optionLines(OPTIONS)}`)
    return
  }
  const { faults, state, 'api-key': apiKey } = flags
  const options: SandboxOptions = {
    seed: integer('--seed', flags.seed, 1, 2 ** 32 - 1),
    balance: integer('--balance', flags.balance, 1_000_000, Number.MAX_SAFE_INTEGER),
    preset: presetNamed(flags.preset ?? 'default'),
    faults: faults === undefined ? [] : reading(faults, () => parseFaultRules(readFileSync(faults, 'utf8'))),
    ...(apiKey !== undefined && { apiKey }),
    keepRequests: 10_000,
  }
  // Only the API key can still be invalid here.
  const sandbox = reading('--api-key', () => createSandbox(options))
  if (state !== undefined) {
    if (existsSync(state))
      reading(state, () => sandbox.load(readState(parseJson(readFileSync(state, 'utf8')))))
    // Found only on exit, this would lose the state of the whole session.
    reading('--state: cannot save there', () =>
      accessSync(`${dirname(state)}/`, constants.W_OK | constants.X_OK),
    )
  }
  const server = await serveSandbox(sandbox, {
    port: integer('--port', flags.port, 4010, 65_535),
    host: flags.host ?? '127.0.0.1',
    cors: flags.cors ?? false,
    control: flags.control ?? (flags['no-control'] ? false : 'loopback'),
    ...(flags.quiet !== true && {
      onRequest: (request) => printLine(logLine(request)),
      onNotice: printLine,
    }),
  }).catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error)
    throw new UsageError(`cannot listen: ${reason}; choose another --port or --host`)
  })
  // Ignore a closed pipe: the parent process may read only the first line.
  process.stdout.on('error', () => {})
  // Listen for signals before printing the first line: the process that reads the line may send a
  // signal immediately.
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      stop(server, sandbox, state).then(
        () => process.exit(0),
        (error: unknown) => fail(`cannot save the state; the file is unchanged: ${String(error)}`, 1),
      )
    })
  printLine(`customer-ordering-sdk sandbox listening on ${server.url} (API key: ${sandbox.apiKey})`)
  if (flags.quiet !== true) {
    printLine(`export CUSTOMER_ORDERING_BASE_URL=${server.url}`)
    printLine(`export CUSTOMER_ORDERING_API_KEY=${shellQuoted(sandbox.apiKey)}`)
  }
  if (server.control && flags.quiet !== true)
    printLine(`live page: ${server.url}/, control API: ${server.url}/__sandbox/`)
}

async function stop(server: SandboxServer, sandbox: Sandbox, state: string | undefined): Promise<void> {
  await server.close()
  if (state !== undefined) {
    // Write a temporary file, then rename it: a crash must not leave an incomplete state file.
    writeFileSync(`${state}.new`, `${JSON.stringify(sandbox.dump(), null, 2)}\n`)
    renameSync(`${state}.new`, state)
  }
}

function fail(message: string, exitCode: number): never {
  process.stderr.write(`customer-ordering-sdk sandbox: ${message}\n`)
  process.exit(exitCode)
}

export async function runSandbox(argv: string[]): Promise<void> {
  await start(argv).catch((error: unknown) =>
    fail(error instanceof UsageError ? error.message : `unexpected error: ${String(error)}`, 2),
  )
}

function shellQuoted(text: string): string {
  return /^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}
