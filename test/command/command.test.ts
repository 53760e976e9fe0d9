import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createSandbox, type Sandbox } from 'customer-ordering-sdk/sandbox'
import { type SandboxServer, serveSandbox } from 'customer-ordering-sdk/sandbox/server'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { aesGcm } from '../../src/aes-gcm.ts'
import { CustomerOrderingClient } from '../../src/client.ts'
import { run } from '../../src/command/run.ts'
import { askBy } from '../../src/command/terminal.ts'
import type { ClientOptions } from '../../src/options.ts'
import { SqliteStore } from '../../src/stores/sqlite.ts'
import { VERSION } from '../../src/version.ts'
import { failure, order } from '../support/lab.ts'

const main = fileURLToPath(new URL('../../src/command/main.ts', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'command-'))

let sandbox: Sandbox
let service: SandboxServer
let files = 0
let path = ''

beforeAll(async () => {
  sandbox = createSandbox({ balance: 1_000_000 })
  service = await serveSandbox(sandbox)
})
afterAll(async () => {
  await service.close()
  rmSync(folder, { recursive: true })
})

/** A program of the shop, with the same file, which runs until it has done something. */
async function program(
  act: (client: CustomerOrderingClient) => Promise<unknown>,
  changes: ClientOptions = {},
  runtime: ConstructorParameters<typeof CustomerOrderingClient>[1] = {},
): Promise<void> {
  const store = new SqliteStore({ path })
  const options = { baseUrl: service.url, apiKey: sandbox.apiKey, account: 'shop', store, maxRetries: 0 }
  const client = new CustomerOrderingClient({ ...options, ...changes }, runtime)
  await act(client)
  await client.close()
}

/** A store with an order in doubt (charged), a lost order (not charged), and a settled order. */
beforeEach(async () => {
  sandbox.reset()
  path = join(folder, `orders-${files++}.db`)
  sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'commitThenDrop' } })
  await program(async ({ orders }) => {
    await failure(orders.create(order('in-doubt')))
    sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'drop' } })
    await failure(orders.create(order('lost')))
    await orders.create(order('settled'))
  })
})

interface Given {
  readonly env?: Readonly<Record<string, string>>
  /** The person's input. If undefined, nobody can be asked. */
  readonly reply?: string
  readonly folder?: string
}

const WINDOW = ['--safe-retry-window', '1200000']

/** Runs the command in this process. `~` stands for the flags of the store. */
async function command(line: string, given: Given = {}) {
  const output = { out: '', err: '', asked: '' }
  const window = /^recover\b/.test(line) ? WINDOW : []
  const flags = line
    .split(' ')
    .flatMap((word) => (word === '~' ? ['--sqlite', path, '--account', 'shop', ...window] : [word]))
  const code = await run(flags.filter(Boolean), {
    env: { CUSTOMER_ORDERING_BASE_URL: service.url, CUSTOMER_ORDERING_API_KEY: sandbox.apiKey, ...given.env },
    folder: given.folder ?? folder,
    interactive: given.reply !== undefined,
    out: (text) => {
      output.out += text
    },
    err: (text) => {
      output.err += text
    },
    ask: async (question) => {
      output.asked += question
      return given.reply ?? ''
    },
  })
  expect(output.out + output.err + output.asked).not.toContain(sandbox.apiKey)
  const lines = () => output.out.trim().split('\n')
  return { code, ...output, json: () => lines().map((text) => JSON.parse(text)) }
}

describe('customer-ordering-sdk', () => {
  it('the command lists unresolved orders as a table, and exits with 3', async () => {
    const { code, out } = await command('unresolved ~')
    const [head = '', ...rows] = out.trim().split('\n')
    expect(head).toMatch(/^reference +key +state +ambiguous +attempts +sent +recorded$/)
    expect(
      rows
        .map((row) =>
          row
            .split(/ +/)
            .filter((_, index) => index !== 1)
            .slice(0, 4),
        )
        .toSorted(),
    ).toEqual([
      ['in-doubt', 'open', 'yes', '1'],
      ['lost', 'open', 'yes', '1'],
    ])
    expect(code).toBe(3)
  })

  it.each(['unresolved', 'show in-doubt', 'recover', 'reconcile', 'forget settled --yes'])(
    "the command exits with 2 if a misspelt account or server hides the store's orders: %s",
    async (line) => {
      const searched = (server: string, account: string) => JSON.stringify([server, account])
      const account = await command(`${line} ~ --account shopp`)
      const server = await command(`${line} ~ --server https://elsewhere.example`)
      expect([account.code, server.code]).toEqual([2, 2])
      const found = `, only of ${searched(service.url, 'shop')}. Check --server and --account.\n`
      expect(account.err).toContain(
        `no orders of [server, account] ${searched(service.url, 'shopp')}${found}`,
      )
      expect(server.err).toContain(`${searched('https://elsewhere.example', 'shop')}${found}`)
    },
  )

  it('the command exits with 0 for a store without orders', async () => {
    path = join(folder, `orders-${files++}.db`)
    await new SqliteStore({ path }).close()
    expect(await command('unresolved ~')).toEqual(
      expect.objectContaining({ code: 0, out: 'none\n', err: '' }),
    )
  })

  it('the command shows an order by its reference or its key, and exits with 1 if it does not exist', async () => {
    const { code, json } = await command('show in-doubt --json ~')
    expect(code).toBe(0)
    const [record] = json()
    expect(record).toMatchObject({ externalOrderId: 'in-doubt', state: 'open', ambiguous: true })
    const byKey = await command(`show --key ${record.key} ~`)
    expect(byKey.out).toMatch(/^reference {3}in-doubt\nkey +\S+\nstate +open\nambiguous +yes\n/)
    expect(await command('show nothing ~')).toMatchObject({ code: 1, out: '' })
  })

  it('the command recovers after a yes, charges each order once, and then asks nothing', async () => {
    const { code, asked, json } = await command('recover --json ~', { reply: 'y' })
    expect(asked).toBe(
      'recover tries to settle 2 open orders. It sends an order again only if that is safe, and charges each order at most once. Continue? [y/N] ',
    )
    const outcomes = json().map(({ outcome, record }) => `${record.externalOrderId} ${outcome}`)
    expect(outcomes.toSorted()).toEqual(['in-doubt created', 'lost created'])
    expect(code).toBe(0)
    for (const reference of ['in-doubt', 'lost', 'settled']) sandbox.expectChargedOnce(reference)
    expect(await command('recover ~')).toMatchObject({ code: 0, out: 'none\n', asked: '' })
    expect(await command('unresolved ~')).toMatchObject({ code: 0, out: 'none\n' })
  })

  it('the command recovers in a script with --yes, and exits with 3 if orders stay open', async () => {
    sandbox.faults.add({
      match: { operation: 'createOrder' },
      times: 'always',
      action: { type: 'status', status: 503 },
    })
    const { code, out } = await command('recover --yes ~')
    expect(out).toMatch(/still_open +in-doubt /)
    expect(code).toBe(3)
    sandbox.expectChargedOnce('in-doubt')
    sandbox.expectNotCharged('lost')
  })

  it.each(['recover ~', 'resolve in-doubt --as abandoned ~', 'forget settled ~'])(
    'the command sends and writes nothing for "%s" without a yes',
    async (line) => {
      const requests = sandbox.requests.length
      for (const given of [{}, { reply: '' }, { reply: 'n' }, { reply: 'yesterday' }]) {
        const { code, err, asked } = await command(line, given)
        expect(code).toBe(4)
        expect(given.reply === undefined ? err : asked).toMatch(
          given.reply === undefined ? /Add --yes/ : /Continue\?/,
        )
      }
      expect(sandbox.requests).toHaveLength(requests)
      expect((await command('unresolved --json ~')).json()).toHaveLength(2)
      expect((await command('show settled ~')).code).toBe(0)
    },
  )

  it('the command resolves an order as created by its id, and as abandoned after a yes', async () => {
    const { orderId = '' } = sandbox.expectChargedOnce('in-doubt')
    const created = await command(`resolve in-doubt --as created --order-id ${orderId} ~`)
    expect(created).toMatchObject({ code: 0, asked: '' })
    expect(created.out).toMatch(new RegExp(`^state +created\\n[\\s\\S]*^order +${orderId}$`, 'm'))
    const abandoned = await command('resolve lost --as abandoned --json ~', { reply: 'yes' })
    expect(abandoned.json()).toMatchObject([{ externalOrderId: 'lost', state: 'rejected' }])
    expect((await command('unresolved ~')).code).toBe(0)
    sandbox.expectNotCharged('lost')
  })

  it('the command forgets a settled order, and rejects an open one', async () => {
    expect(await command('forget settled --yes ~')).toMatchObject({ code: 0, out: 'forgotten\n' })
    expect(await command('forget settled --yes ~')).toMatchObject({
      code: 0,
      out: 'not found: the store has no record of this order\n',
    })
    expect(await command('forget in-doubt --yes ~')).toMatchObject({ code: 2, out: '' })
  })

  it('the command reconciles, and exits with 3 if store and service differ', async () => {
    const { code, json } = await command('reconcile --json ~')
    const lines = json().map(({ kind, record }) => `${record.externalOrderId} ${kind}`)
    expect(lines.toSorted()).toEqual(['in-doubt matched', 'lost only_local', 'settled matched'])
    expect(code).toBe(3)
    // An open order that the service lists is not settled yet.
    const listed = await command('reconcile ~')
    expect(listed.out).toMatch(/^matched +in-doubt +open /m)
    const later = await command('reconcile --since 2999-01-01 ~')
    expect(later).toMatchObject({ code: 0, out: 'none\n' })
  })

  it('the command shows balance and services without a store', async () => {
    expect((await command('balance --json')).json()).toMatchObject([{ currency: 'EUR' }])
    expect((await command('balance')).out).toMatch(/\d/)
    const { out } = await command('services')
    expect(out).toMatch(/^service +price +min +max +step\n/)
    expect(out).toContain('svc_standard')
    expect((await command('services --json')).json()).toContainEqual(
      expect.objectContaining({ productId: 'svc_sold_out', stockState: 'out_of_stock' }),
    )
  })

  it('the command reads a store without an API key, and sends nothing', async () => {
    const env = { CUSTOMER_ORDERING_API_KEY: '' }
    expect((await command('unresolved ~', { env })).code).toBe(3)
    expect(await command('recover --yes ~', { env })).toMatchObject({
      code: 2,
      err: 'customer-ordering-sdk: CUSTOMER_ORDERING_API_KEY is not set. Set it in the environment.\n',
    })
  })

  it.each([
    ['sell ~', 'There is no command "sell"'],
    ['toString', 'There is no command "toString"'],
    ['unresolved', 'exactly one of --sqlite PATH, --postgres URL or --redis URL'],
    ['unresolved ~ --redis redis://x', 'exactly one of --sqlite PATH'],
    ['unresolved --sqlite missing.db --account shop', 'does not exist'],
    ['show ~', "requires either the order's reference"],
    ['show r1 --key k1 ~', "requires either the order's reference"],
    ['show r1 r2 ~', 'takes at most one reference, but also got "r2"'],
    ['recover r1 ~', 'takes no reference'],
    ['recover --sqlite orders.db --account shop', 'recover requires --safe-retry-window'],
    [
      'recover --sqlite orders.db --account shop --safe-retry-window 20m',
      'must be a whole number of milliseconds',
    ],
    ['balance --sqlite x.db', 'balance has no flag --sqlite'],
    ['unresolved --take-over ~', 'unresolved has no flag --take-over'],
    ['resolve r1 --as created ~', '--as created requires --order-id'],
    ['resolve r1 --as done ~', '--as must be created or abandoned'],
    ['recover --remember nothing ~', '--remember must be id or order'],
    ['balance --remember id', 'balance has no flag --remember'],
    ['reconcile --since yesterday ~', '--since must be a time'],
    ['recover --force ~', 'There is no flag --force; see --help.'],
    ['unresolved --jsn ~', 'There is no flag --jsn (did you mean --json?); see --help.'],
    ['unresolved --acount=shop ~', 'There is no flag --acount (did you mean --account?); see --help.'],
    ['unresolved --json=yes ~', 'The flag --json takes no value; see --help.'],
    ['unresolved ~ --server', 'The flag --server requires a value; see --help.'],
    ['unresolved --server --json ~', 'The flag --server requires a value; see --help.'],
  ])('the command rejects "%s" with exit code 2', async (line, message) => {
    const { code, out, err } = await command(line)
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toContain(message)
    expect(err.trim().split('\n')).toHaveLength(1)
  })

  it('the command requires an account with a store, and the error states it', async () => {
    const { code, err } = await command(`unresolved --sqlite ${path}`)
    expect(code).toBe(2)
    expect(err).toContain('account')
  })

  it.each([
    ['--postgres postgres://ada:secret-word@127.0.0.1/x', 'npm install pg'],
    ['--redis redis://:secret-word@127.0.0.1', 'npm install redis'],
  ])('the command names the driver that is not installed, %s', async (flags, message) => {
    const { code, err } = await command(`unresolved ${flags} --account shop`)
    expect(code).toBe(2)
    expect(err).toContain(message)
  })

  it("the command uses the driver of the user's project, and hides the password that it repeats", async () => {
    const project = join(folder, 'project')
    mkdirSync(join(project, 'node_modules/pg'), { recursive: true })
    writeFileSync(
      join(project, 'node_modules/pg/index.js'),
      `exports.Pool = class {
        totalCount = 0
        constructor({ connectionString }) { this.address = connectionString }
        on() {}
        query() { return Promise.reject(new Error('cannot reach ' + this.address)) }
        connect(callback) { callback(new Error('cannot reach ' + this.address)) }
        async end() {}
      }`,
    )
    const line = 'unresolved --postgres postgres://ada:secret-word@127.0.0.1/x --account shop'
    const { code, err } = await command(line, { folder: project })
    expect(code).toBe(1)
    expect(err).toMatch(/^customer-ordering-sdk: /)
    expect(err).not.toContain('secret-word')
  })

  it('the command exits with 1 and one line if the service rejects the API key', async () => {
    const { code, out, err } = await command('balance', {
      env: { CUSTOMER_ORDERING_API_KEY: 'a-wrong-api-key' },
    })
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err.trim().split('\n')).toHaveLength(1)
    expect(err).not.toContain('a-wrong-api-key')
  })

  it('the command prints no control characters from a store', async () => {
    sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'drop' } })
    await program(({ orders }) => failure(orders.create(order('\u001b[2Jgone'))))
    const { out } = await command('unresolved ~')
    expect(out).toContain('?[2Jgone')
    expect(out).not.toContain('\u001b')
  })

  it('the command prints its version and its help', async () => {
    expect(await command('--version')).toMatchObject({ code: 0, out: `${VERSION}\n` })
    const { code, out } = await command('--help')
    expect(code).toBe(0)
    expect(out).toMatch(/^customer-ordering-sdk: /)
    expect(await command('')).toMatchObject({ code: 2, out: '', err: out })
  })

  it("the command keeps no more of an order than the program's remember: 'id' does", async () => {
    await command('recover --yes --remember id ~')
    const [record] = (await command('show in-doubt --json ~')).json()
    expect(Object.keys(record.order).toSorted()).toEqual(['amount', 'id', 'status'])
  })

  it('the command calls an http address in a private network only if permitted', async () => {
    const env = { CUSTOMER_ORDERING_BASE_URL: 'http://orders.internal' }
    const refused = await command('unresolved ~', { env })
    expect(refused).toMatchObject({ code: 2, out: '' })
    expect(refused.err).toContain('allowInsecureHttp')
    const allowed = await command(`unresolved --allow-insecure-http --server ${service.url} ~`, { env })
    expect(allowed).toMatchObject({ code: 3, err: '' })
  })

  it('the command reports rows with a codec as unreadable, and sends nothing for them', async () => {
    path = join(folder, `orders-${files++}.db`)
    sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'drop' } })
    await program(({ orders }) => failure(orders.create(order('sealed'))), {
      codec: aesGcm(new Uint8Array(32)),
    })
    const requests = sandbox.requests.length
    const listed = await command('unresolved ~')
    expect(listed.code).toBe(1)
    expect(listed.err).toContain('codec')
    const recovered = await command('recover --yes --json ~')
    expect(recovered.code).toBe(3)
    expect(recovered.json()).toMatchObject([{ outcome: 'needs_attention', reason: 'corrupt' }])
    expect(sandbox.requests).toHaveLength(requests)
  })

  it('the command removes no record, however old', async () => {
    const old = Date.now() - 2000 * 86_400_000
    await program(({ orders }) => orders.create(order('old')), {}, { now: () => old })
    for (const line of ['recover --yes ~', 'unresolved ~', 'reconcile ~', 'show old ~']) await command(line)
    expect((await command('show old ~')).code).toBe(0)
  })

  it.each([
    ['Ctrl-C', '\u0003'],
    ['Ctrl-D', '\u0004'],
    ['a line of its own', '\n'],
    ['yes', 'yes\n'],
  ])('the command interprets the input %s at its question', async (name, typed) => {
    const input = new PassThrough()
    const output = Object.assign(new PassThrough(), { isTTY: true })
    const reply = askBy(input, output)('Continue? ')
    input.write(typed)
    expect(await reply).toBe(name === 'yes' ? 'yes' : '')
  })

  it('the command takes the end of the input at its question as no', async () => {
    const input = new PassThrough()
    const reply = askBy(input, new PassThrough())('Continue? ')
    input.end()
    expect(await reply).toBe('')
  })

  it('the command is a program that ends on its own', async () => {
    const env = {
      ...process.env,
      CUSTOMER_ORDERING_BASE_URL: service.url,
      CUSTOMER_ORDERING_API_KEY: sandbox.apiKey,
    }
    const flags = ['--sqlite', path, '--account', 'shop', '--json', '--yes']
    const start = (name: string) =>
      promisify(execFile)(process.execPath, [main, name, ...flags, ...WINDOW], { env }).then(
        ({ stdout }) => ({ code: 0, lines: stdout.split('\n').filter(Boolean).length }),
        ({ code, stdout }) => ({ code, lines: stdout.split('\n').filter(Boolean).length }),
      )
    expect(await start('unresolved')).toEqual({ code: 3, lines: 2 })
    expect(await start('recover')).toEqual({ code: 0, lines: 2 })
    expect(await start('unresolved')).toEqual({ code: 0, lines: 0 })
    for (const reference of ['in-doubt', 'lost']) sandbox.expectChargedOnce(reference)
  })
})
