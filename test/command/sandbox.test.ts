import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { afterEach, expect, test, vi } from 'vitest'
import { runSandbox } from '../../src/command/sandbox.ts'
import { orderInit } from '../sandbox/caller.ts'
import { temporaryFolder } from '../support/folder.ts'
import { endOf, run } from '../support/run.ts'

// A process starts slowly on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const command = fileURLToPath(new URL('../../src/command/main.ts', import.meta.url))
const folder = temporaryFolder('sandbox-cli')
const children = new Set<ChildProcess>()
afterEach(() => {
  vi.restoreAllMocks()
  for (const child of children) child.kill('SIGKILL')
})

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

function startProcess(...args: string[]) {
  const running = run(process.execPath, [command, 'sandbox', ...args])
  const { child } = running
  children.add(child)
  const firstLine = async () => {
    const [chunk] = await once(child.stdout ?? expect.unreachable(), 'data')
    return String(chunk).split('\n')[0] ?? ''
  }
  return { child, ended: endOf(running), firstLine }
}

/**
 * A start in this thread, with its output and exit code. Only tests of process behaviour need a
 * separate process.
 */
async function runHere(...args: string[]) {
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    vi.spyOn(process[name], 'write').mockImplementation((text) => {
      output[name] += String(text)
      return true
    })
  const exit = vi.spyOn(process, 'exit').mockImplementation((() => {}) as typeof process.exit)
  await runSandbox(args)
  const ended = async () => {
    await vi.waitFor(() => expect(exit).toHaveBeenCalled(), { interval: 1, timeout: 10_000 })
    vi.restoreAllMocks()
    return { code: exit.mock.calls[0]?.[0], ...output }
  }
  return { output, ended }
}

/** A sandbox that the command serves in this thread. */
async function started(...args: string[]) {
  const { output, ended } = await runHere('--port', '0', ...args)
  const [line = ''] = output.stdout.split('\n')
  return {
    ...clientOf(line),
    stop: () => {
      process.emit('SIGTERM')
      process.removeAllListeners('SIGINT')
      return ended()
    },
  }
}

/** Reads the command's first line, and returns its address and its caller. */
function clientOf(line: string) {
  const [, url = '', apiKey = ''] =
    /^customer-ordering-sdk sandbox listening on (http:\/\/\S+) \(API key: (\S+)\)$/.exec(line) ?? []
  const order = (key: string) => fetch(`${url}/v1/orders`, orderInit(apiKey, key))
  return { url, apiKey, order }
}

test.each(['SIGINT', 'SIGTERM'] as const)('the command serves, logs, and stops on %s', async (signal) => {
  const { child, ended, firstLine } = startProcess('--port', '0')
  const { url, apiKey, order } = clientOf(await firstLine())
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
  expect((await order('key-1')).status).toBe(201)
  expect((await fetch(`${url}/v1/balance`)).status).toBe(401)
  child.kill(signal)
  const { code, stdout, stderr } = await ended
  expect(code).toBe(0)
  expect(stderr).toBe('')
  expect(stdout.split('\n').slice(1)).toEqual([
    `export CUSTOMER_ORDERING_BASE_URL=${url}`,
    `export CUSTOMER_ORDERING_API_KEY=${apiKey}`,
    `live page: ${url}/, control API: ${url}/__sandbox/`,
    'POST /v1/orders 201 charged, key key-1, key_personal',
    'GET /v1/balance 401 no API key',
    '',
  ])
  expect(stdout.split(apiKey)).toHaveLength(3)
})

test("the command uses the seed's API key, and prints nothing with --quiet", async () => {
  const { apiKey, order, stop } = await started('--seed', '7', '--quiet')
  expect(apiKey).toBe(createSandbox({ seed: 7 }).apiKey)
  await order('k')
  expect((await stop()).stdout.split('\n')).toHaveLength(2)
})

test('the command accepts a preset, an API key, a balance, an address and CORS', async () => {
  const { url, apiKey, order, stop } = await started(
    ...['--preset', 'rfc9457', '--api-key', "mi'ne", '--balance', '499', '--host', 'localhost', '--cors'],
  )
  expect(apiKey).toBe("mi'ne")
  const refused = await order('k')
  expect(refused.status).toBe(402)
  expect(refused.headers.get('content-type')).toBe('application/problem+json')
  expect((await fetch(`${url}/v1/balance`)).headers.get('access-control-allow-origin')).toBe('*')
  const { stdout } = await stop()
  expect(stdout).toContain("export CUSTOMER_ORDERING_API_KEY='mi'\\''ne'\n")
})

test('the command applies fault rules from a file', async () => {
  const rules = [{ action: { type: 'commitThenDrop' } }, { action: { type: 'inProgress' } }]
  const { order, stop } = await started('--faults', file('faults.json', JSON.stringify(rules)))
  await expect(order('k')).rejects.toThrow('fetch failed')
  expect((await order('k')).status).toBe(409)
  expect((await order('k')).status).toBe(201)
  expect((await stop()).stdout).toContain('POST /v1/orders dropped charged, fault commitThenDrop, key k')
})

test('the command can run without the control API and the live page', async () => {
  const { url, stop } = await started('--no-control')
  expect((await fetch(url)).status).toBe(404)
  expect((await fetch(`${url}/__sandbox/faults`)).status).toBe(404)
  expect((await stop()).stdout).not.toContain('control API')
})

test('the command opens the control API to other machines only if told to, and logs its changes', async () => {
  const closed = await started('--host', '0.0.0.0')
  expect((await fetch(`${closed.url}/__sandbox/faults`)).status).toBe(404)
  await closed.stop()
  const open = await started('--host', '0.0.0.0', '--control')
  const body = JSON.stringify({ action: { type: 'drop' } })
  expect((await fetch(`${open.url}/__sandbox/faults`, { method: 'POST', body })).status).toBe(201)
  expect((await open.stop()).stdout).toContain('\nPOST /__sandbox/faults 201\n')
})

test('the command logs requests without escape sequences from them', async () => {
  const { url, stop } = await started()
  const { port } = new URL(url)
  await new Promise<void>((resolve) => {
    const request =
      'GET /v1/balance HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\u009b31m\r\nConnection: close\r\n\r\n'
    const socket = connect(Number(port), '127.0.0.1', () => socket.end(request, 'latin1'))
    socket.resume().on('close', () => resolve())
  })
  const { stdout } = await stop()
  expect(stdout).toContain('key k\\u009b31m')
  expect(stdout.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u)
})

test('the command keeps its state in a file between runs', async () => {
  const state = join(folder, 'state.json')
  const first = await started('--state', state, '--seed', '3')
  const created = await (await first.order('k')).json()
  expect((await first.stop()).code).toBe(0)
  const second = await started('--state', state)
  expect(second.apiKey).toBe(first.apiKey)
  expect(await (await second.order('k')).json()).toEqual(created)
  await second.stop()
  expect(JSON.parse(readFileSync(state, 'utf8')).ledger).toHaveLength(1)
})

const FILES: Readonly<Record<string, string>> = {
  'broken.json': '[\n{"action":{"type":"drop"}}\n{',
  'other.json': '{"version":1}',
  'typo.json': '[\n{ "action": { "type": "drop" } },\n{ "skipp": 1, "action": { "type": "drop" } }\n]',
  'text.json': JSON.stringify(createSandbox().dump(), null, 2).replace('1000000', '"much"'),
}

test.each([
  ['an unknown flag', ['--prot', '1'], 'There is no option --prot (did you mean --port?); see --help.\n'],
  ['a stray word', ['4010'], 'there is no argument "4010"; see --help'],
  ['a flag without its value', ['--port'], 'The option --port requires a value; see --help.'],
  ['a port that is no number', ['--port', 'x'], '--port: expected a whole number from 0 to 65535, got "x"'],
  ['a port that is too high', ['--port', '65536'], '--port: expected a whole number from 0 to 65535'],
  ['a seed with a fraction', ['--seed', '1.5'], '--seed: expected a whole number from 0 to 4294967295'],
  ['an unknown preset', ['--preset', 'strict'], '--preset: expected one of default, remembers-refusals'],
  ['an API key with a space', ['--api-key', 'a b'], '--api-key: state.apiKeys[0].secret: expected visible'],
  ['a fault file that is not there', ['--faults', 'none.json'], 'none.json: ENOENT'],
  ['a fault file that is no JSON', ['--faults', 'broken.json'], 'broken.json: not valid JSON: '],
  ['a folder as a fault file', ['--faults', '.'], 'EISDIR'],
  ['a state file of another kind', ['--state', 'other.json'], 'state: the field "random" is missing'],
  ['a mistyped field in a fault rule', ['--faults', 'typo.json'], 'typo.json: $[1]: unknown field "skipp"'],
  ['a text in a wallet of a state', ['--state', 'text.json'], 'text.json: state.customers[0].wallet.amount'],
  ['a state in no folder', ['--state', 'none/s.json'], '--state: cannot save there: ENOENT: no such file'],
  ['a state below a file', ['--state', 'text.json/s.json'], '--state: cannot save there: ENOTDIR: '],
  ['a foreign address', ['--host', '192.0.2.1', '--port', '0'], 'cannot listen: listen EADDRNOTAVAIL'],
])('the command sandbox exits with code 2 and the reason after %s', async (_, args, message) => {
  for (const [name, text] of Object.entries(FILES)) file(name, text)
  const words = args.map((word) => (/\.(json)?$/.test(word) ? join(folder, word) : word))
  const { ended } = await runHere(...words)
  const { code, stdout, stderr } = await ended()
  expect(stderr).toContain(`customer-ordering-sdk sandbox: `)
  expect(stderr).toContain(message)
  expect(stderr.trim().split('\n')).toHaveLength(1)
  expect(stdout).toBe('')
  expect(code).toBe(2)
})

test('of its process, too', async () => {
  const { code, stdout, stderr } = await startProcess('--port', 'x').ended
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toMatch(/^customer-ordering-sdk sandbox: --port: expected a whole number .*\n$/)
})
