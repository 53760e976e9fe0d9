import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { parseFaultRules } from './control/fault-file.ts'
import { readData } from './control/yaml.ts'
import { type SandboxServer, serveSandbox } from './http/server.ts'
import { createSandbox, type Sandbox } from './sandbox.ts'
import { type SandboxPreset, sandboxPresets } from './service/behaviour.ts'
import type { SandboxOptions } from './service/options.ts'
import type { SandboxRequest } from './service/reply.ts'
import { readState } from './service/state.ts'

const usage = `customer-ordering-sdk sandbox: an in-memory Customer Ordering API for development and tests

  --port N        port to listen on, 0 for any free port (default 4010)
  --host NAME     address to listen on (default 127.0.0.1)
  --seed N        seed for ids, shuffled lists and random faults (default 1)
  --preset NAME   preset for behaviour that the API document leaves open:
                  ${Object.keys(sandboxPresets).join(', ')}
  --faults FILE   load a list of fault rules in JSON or YAML
  --state FILE    load the state from this file if it exists, ignoring --balance and --api-key;
                  save the state to it on exit
  --balance N     balance of each of the two wallets in minor currency units (default 1000000)
  --api-key TEXT  API key of the personal customer (default: derived from the seed)
  --cors          allow web pages from any origin to call the service
  --no-control    serve neither the live page (/) nor the control API (/__sandbox/)
  --control       serve the page and the control API even on an address that other machines can
                  reach
  --quiet         print only the URL and the API key
  --help          print this help
`

class StartError extends Error {}

function reading<T>(what: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw new StartError(`${what}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function integer(flag: string, text: string | undefined, fallback: number, max: number): number {
  if (text === undefined) return fallback
  if (/^\d+$/.test(text) && Number(text) <= max) return Number(text)
  throw new StartError(`${flag}: expected a whole number from 0 to ${max}, got ${JSON.stringify(text)}`)
}

function presetNamed(name: string): SandboxPreset {
  const known = Object.keys(sandboxPresets).find((preset): preset is SandboxPreset => preset === name)
  if (known !== undefined) return known
  throw new StartError(
    `--preset: expected one of ${Object.keys(sandboxPresets).join(', ')}, got ${JSON.stringify(name)}`,
  )
}

function readFlags(argv: string[]) {
  try {
    return parseArgs({
      args: argv,
      strict: true,
      allowPositionals: false,
      allowNegative: true,
      options: {
        port: { type: 'string' },
        host: { type: 'string' },
        seed: { type: 'string' },
        preset: { type: 'string' },
        faults: { type: 'string' },
        state: { type: 'string' },
        balance: { type: 'string' },
        'api-key': { type: 'string' },
        cors: { type: 'boolean' },
        control: { type: 'boolean' },
        quiet: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    }).values
  } catch (error) {
    // Print only the first sentence of Node's message. The rest explains positional arguments,
    // which this command does not accept.
    const [problem] = (error instanceof Error ? error.message : String(error)).split(/\. |\n/)
    throw new StartError(`${problem}; see --help`)
  }
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

/** Replaces what nobody sees: a string from a request must not control the terminal. */
function printLine(line: string): void {
  process.stdout.write(`${line.replace(/(?! )[\p{C}\p{Z}\p{DI}]/gu, '?')}\n`)
}

async function start(argv: string[]): Promise<void> {
  const flags = readFlags(argv)
  if (flags.help) {
    process.stdout.write(usage)
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
  if (state !== undefined && existsSync(state))
    reading(state, () => sandbox.load(readState(readData(readFileSync(state, 'utf8')))))
  const server = await serveSandbox(sandbox, {
    port: integer('--port', flags.port, 4010, 65_535),
    host: flags.host ?? '127.0.0.1',
    cors: flags.cors ?? false,
    control: flags.control ?? 'loopback',
    ...(flags.quiet !== true && {
      onRequest: (request) => printLine(logLine(request)),
      onNotice: printLine,
    }),
  }).catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error)
    throw new StartError(`cannot listen: ${reason}; choose another --port or --host`)
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
    fail(error instanceof StartError ? error.message : `unexpected error: ${String(error)}`, 2),
  )
}

function shellQuoted(text: string): string {
  return /^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}
