import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { serveSandbox } from 'customer-ordering-sdk/sandbox/server'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { CustomerOrderingClient } from '../../src/client.ts'
import { SqliteStore } from '../../src/stores/sqlite.ts'
import { FULL } from '../support/effort.ts'
import { temporaryFolder } from '../support/folder.ts'
import { failure, order } from '../support/lab.ts'
import { describeUnless } from '../support/needs.ts'
import { endOf, run } from '../support/run.ts'

const main = fileURLToPath(new URL('../../src/command/main.ts', import.meta.url))
const folder = temporaryFolder('command-process')
const sandbox = createSandbox()
const service = await serveSandbox(sandbox)
afterAll(() => service.close())

let files = 0
let path = ''

function missingProgram(name: string): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  return folders.some((each) => existsSync(join(each, name))) ? undefined : `${name} is not installed`
}

/** Another program with the same store. */
function shop(): CustomerOrderingClient {
  const store = new SqliteStore({ path })
  const { apiKey } = sandbox
  return new CustomerOrderingClient({ baseUrl: service.url, apiKey, account: 'shop', store, maxRetries: 0 })
}

/** A store with two orders in doubt. */
beforeEach(async () => {
  sandbox.reset()
  path = join(folder, `orders-${files++}.db`)
  const client = shop()
  for (const reference of ['first', 'second']) {
    sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'commitThenDrop' } })
    await failure(client.orders.create(order(reference)))
  }
  await client.close()
})

function environment(changes: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  // The test run sets NO_COLOR.
  // Node prints no colours where CI is set.
  const { NO_COLOR: _none, FORCE_COLOR: _forced, CI: _ci, ...inherited } = process.env
  return {
    ...inherited,
    CUSTOMER_ORDERING_BASE_URL: service.url,
    CUSTOMER_ORDERING_API_KEY: sandbox.apiKey,
    CUSTOMER_ORDERING_STORE: path,
    CUSTOMER_ORDERING_ACCOUNT: 'shop',
    CUSTOMER_ORDERING_SAFE_RETRY_WINDOW: '1200000',
    ...changes,
  }
}

const command = (line: string, changes?: Readonly<Record<string, string>>) =>
  endOf(run(process.execPath, [main, ...line.split(' ')], { env: environment(changes) }))

async function unresolved() {
  const client = shop()
  const records = await client.orders.unresolved()
  await client.close()
  return records
}

/** A recovery whose second request never gets a response. */
function recoveryThatHangs() {
  sandbox.faults.add({ match: { operation: 'createOrder' }, skip: 1, action: { type: 'stall' } })
  return spawn(process.execPath, [main, 'recover', '--yes'], { env: environment() })
}

describe('customer-ordering-sdk as a process', () => {
  it('the command is a program that ends on its own', async () => {
    expect(await command('unresolved --json')).toMatchObject({ code: 3, stderr: '' })
    const { code, stdout } = await command('recover --yes --json')
    expect({ code, rows: stdout.trim().split('\n').length }).toEqual({ code: 0, rows: 2 })
    expect(await command('unresolved')).toMatchObject({ code: 0, stdout: 'none\n' })
    for (const reference of ['first', 'second']) sandbox.expectChargedOnce(reference)
  })

  if (!FULL) return

  it('the command prints what was settled so far on Ctrl-C, and leaves no lease behind', async () => {
    const child = recoveryThatHangs()
    const output = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name].setEncoding('utf8').on('data', (text: string) => {
        output[name] += text
      })
    // The first row arrives while the second request waits for its response.
    await expect.poll(() => output.stdout, { timeout: 20_000 }).toContain('created')
    await expect.poll(() => sandbox.requests.filter(({ delivery }) => delivery === 'stall').length).toBe(1)
    child.kill('SIGINT')
    const [code] = await once(child, 'close')
    expect(code).toBe(130)
    expect(output.stderr).toMatch(/interrupted, after 1 created/)
    const [record, ...others] = await unresolved()
    expect(others).toEqual([])
    expect([record?.busyUntil, record?.hold]).toEqual([undefined, undefined])
    expect(await command('recover --yes')).toMatchObject({ code: 0 })
    for (const reference of ['first', 'second']) sandbox.expectChargedOnce(reference)
  })

  async function endsQuietly(script: string): Promise<void> {
    const env = environment({ NODE: process.execPath, MAIN: main })
    const { stdout, stderr } = await run('bash', ['-c', script], { env })
    expect(stdout).toBe('141\n')
    expect(stderr).toMatch(/^customer-ordering-sdk: service .*\n$/)
  }

  it('the command ends quietly if the reader of its output is gone', () =>
    endsQuietly('(exec 3>&1; { "$NODE" "$MAIN" services; echo $? >&3; } | true)'))

  describeUnless(existsSync('/dev/full') ? undefined : 'there is no /dev/full', 'a full disk', () => {
    it('the command ends quietly if the disk is full', () =>
      endsQuietly('"$NODE" "$MAIN" services >/dev/full; echo $?'))
  })

  it('the command stops at a closed pipe, and leaves no lease behind', async () => {
    const child = recoveryThatHangs()
    child.stderr.resume()
    child.stdout.destroy()
    const [code] = await once(child, 'close')
    expect(code).toBe(141)
    for (const record of await unresolved()) expect(record.busyUntil).toBeUndefined()
  })

  const noTerminal = process.platform === 'linux' ? missingProgram('script') : 'only on Linux'
  describeUnless(noTerminal, 'a terminal', () => {
    it('the command uses colours on a terminal, and none with NO_COLOR or in a pipe', async () => {
      const yellow = '\u001b[33m'
      const onTerminal = async (changes: Readonly<Record<string, string>>) => {
        const variables = { NODE: process.execPath, MAIN: main, TERM: 'xterm-256color', ...changes }
        const parameters = ['-qc', '"$NODE" "$MAIN" unresolved', '/dev/null']
        return (await run('script', parameters, { env: environment(variables) })).stdout
      }
      expect(await onTerminal({})).toContain(yellow)
      expect(await onTerminal({ NO_COLOR: '1' })).not.toContain(yellow)
      expect((await command('unresolved')).stdout).not.toContain(yellow)
    })
  })

  it('the completion for bash completes commands and their options', async () => {
    const cases = [['unr'], ['reconcile', '--a'], ['orders', 'g'], ['completion', '']]
    const program = cases.map(
      (words) => `
        COMP_WORDS=(customer-ordering-sdk ${words.map((word) => `'${word}'`).join(' ')})
        COMP_CWORD=${words.length}
        _customer_ordering_sdk
        echo "\${COMPREPLY[*]}"`,
    )
    const env = environment({ NODE: process.execPath, MAIN: main })
    const script = ['source <("$NODE" "$MAIN" completion bash)', ...program].join('\n')
    const { stdout } = await run('bash', ['-c', script], { env })
    expect(stdout.split('\n')).toEqual([
      'unresolved',
      '--account --all --allow-insecure-http',
      'get',
      'bash zsh fish',
      '',
    ])
  })

  describeUnless(missingProgram('fish'), 'the completion for fish', () => {
    it('the completion for fish completes commands, their options and the file of a store', async () => {
      const lines = ['unr', 'reconcile --al', 'orders g', 'recover --store process.te']
      const program = lines.map((line) => `complete -C 'customer-ordering-sdk ${line}'`)
      const env = environment({ NODE: process.execPath, MAIN: main })
      const script = ['"$NODE" "$MAIN" completion fish | source', ...program].join('\n')
      const { stdout } = await run('fish', ['--no-config', '-c', script], {
        env,
        cwd: import.meta.dirname,
      })
      expect(stdout.split('\n').filter(Boolean)).toEqual([
        ...['unresolved', '--all', '--allow-insecure-http', 'get', 'process.test.ts'],
      ])
    })
  })

  describeUnless(missingProgram('zsh'), 'the completion for zsh', () => {
    it('the completion for zsh completes the options of a command', async () => {
      const env = environment({ NODE: process.execPath, MAIN: main })
      const script = `
      autoload -U compinit && compinit -u -D
      source <("$NODE" "$MAIN" completion zsh)
      echo $_comps[customer-ordering-sdk]
      setopt ksharrays shwordsplit
      COMP_WORDS=(customer-ordering-sdk orders '') COMP_CWORD=2
      _customer_ordering_sdk
      echo "\${COMPREPLY[*]}"`
      const { stdout } = await run('zsh', ['-f', '-c', script], { env })
      expect(stdout).toMatch(/^_bash_complete .*_customer_ordering_sdk\nlist --limit .* get\n$/)
    })
  })

  it('the quick start shows a lost response and one charge', async () => {
    const { code, stdout, stderr } = await command('quickstart')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const [, first, second] =
      /Idempotency-Key (\S+)\n {2}<- no response: [\s\S]*Idempotency-Key (\S+)\n {2}<- 201\n/.exec(stdout) ??
      []
    expect(first).toMatch(/^[\w-]{36}$/)
    expect(second).toBe(first)
    expect(stdout).toContain('charged €5.00, once')
  })
})
