import { EventEmitter } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { PassThrough } from 'node:stream'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { serveSandbox } from 'customer-ordering-sdk/sandbox/server'
import { afterAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { aesGcm } from '../../src/aes-gcm.ts'
import { CustomerOrderingClient } from '../../src/client.ts'
import { time } from '../../src/command/print.ts'
import { askBy, EXIT, Interrupted, terminalOf } from '../../src/command/terminal.ts'
import type { ClientOptions } from '../../src/options.ts'
import { SqliteStore } from '../../src/stores/sqlite.ts'
import { VERSION } from '../../src/version.ts'
import { temporaryFolder } from '../support/folder.ts'
import { failure, order } from '../support/lab.ts'
import { type Given, runHere } from './terminal.ts'

const folder = temporaryFolder('command')
const sandbox = createSandbox({ balance: 1_000_000 })
const service = await serveSandbox(sandbox)
afterAll(() => service.close())

let files = 0
let path = ''

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

const failOnce = (type: 'commitThenDrop' | 'drop') =>
  sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type } })

/** Leaves an uncharged order in doubt, whose key is past its window. */
async function doubtAnHourAgo(): Promise<void> {
  const then = Date.now() - 3_600_000
  const act = async ({ orders }: CustomerOrderingClient): Promise<void> => {
    failOnce('drop')
    await failure(orders.create(order('old')))
  }
  await program(act, {}, { now: () => then })
}

/** A store with two orders in doubt, one charged and one not, and a settled order. */
beforeEach(async () => {
  sandbox.reset()
  path = join(folder, `orders-${files++}.db`)
  await program(async ({ orders }) => {
    failOnce('commitThenDrop')
    await failure(orders.create(order('in-doubt')))
    failOnce('drop')
    await failure(orders.create(order('lost')))
    await orders.create(order('settled'))
  })
})

/** Runs the command in this process. `~` stands for the options of the store. */
async function command(line: string, given: Given = {}) {
  const window = /^recover\b/.test(line) ? ['--safe-retry-window', '1200000'] : []
  const argv = line
    .split(' ')
    .flatMap((word) => (word === '~' ? ['--store', path, '--account', 'shop', ...window] : [word]))
  const ran = await runHere(argv.filter(Boolean), {
    folder,
    ...given,
    env: { CUSTOMER_ORDERING_BASE_URL: service.url, CUSTOMER_ORDERING_API_KEY: sandbox.apiKey, ...given.env },
  })
  expect(ran.out + ran.err + ran.asked).not.toContain(sandbox.apiKey)
  const lines = () => ran.out.trim().split('\n')
  return { ...ran, lines, json: () => lines().map((text) => JSON.parse(text)) }
}

it('the command lists unresolved orders as a table, and exits with 3', async () => {
  const { code, lines } = await command('unresolved ~')
  const [head, ...rows] = lines()
  expect(head).toMatch(/^first sent +attempts +state +externalOrderId$/)
  expect(rows.map((row) => row.replace(/^\S+Z +/, '')).toSorted()).toEqual([
    '1         open: may have been charged         in-doubt',
    '1         open: may have been charged         lost',
  ])
  expect(code).toBe(3)
})

it.each([
  ...['unresolved', 'show in-doubt', 'reconcile', 'recover', 'forget settled'],
  'resolve in-doubt --as created --order-id ID',
])(
  'the command exits with 2, and prints no rows, if a misspelt account or server hides orders: %s',
  async (line) => {
    const { orderId = '' } = sandbox.expectChargedOnce('in-doubt')
    const searched = (server: string, account: string) => JSON.stringify([server, account])
    const run = (option: string) => command(`${line.replace('ID', orderId)} ~ ${option}`)
    const account = await run('--account shopp')
    const server = await run('--server https://elsewhere.example')
    const mail = await run('--account ops@shop.example')
    expect(mail.err).toContain(`${searched(service.url, 'ops@shop.example')}, only of`)
    expect([account.code, server.code, account.out, server.out]).toEqual([2, 2, '', ''])
    // The second run would also name what the first one has stored.
    const found = `, only of ${searched(service.url, 'shop')}. Check --server and --account.\n`
    expect(account.err).toContain(`no orders of [server, account] ${searched(service.url, 'shopp')}${found}`)
    expect(server.err).toContain(`${searched('https://elsewhere.example', 'shop')}${found}`)
  },
)

it('the command exits with 1 and names the store if it cannot compare the account', async () => {
  vi.spyOn(SqliteStore.prototype, 'list').mockRejectedValueOnce(new Error('broken'))
  const { code, err } = await command('forget settled --yes ~')
  expect(code).toBe(1)
  expect(err).toBe(`customer-ordering-sdk: Cannot read the store ${path}: broken\n`)
})

it('the command exits with 0 for a store without orders, and names what it searched', async () => {
  path = join(folder, `orders-${files++}.db`)
  await new SqliteStore({ path }).close()
  const { code, out, err } = await command('unresolved ~')
  expect({ code, out }).toEqual({ code: 0, out: 'none\n' })
  const scope = JSON.stringify([service.url, 'shop'])
  expect(err).toContain(`The store ${path} has no orders of any account.`)
  expect(err).toContain(`Check --store if there should be orders of [server, account] ${scope}.`)
})

it.each(['unresolved', 'recover --yes', 'show r1', 'reconcile', 'resolve r1 --as created --order-id o1'])(
  'the command exits with 2 for a file of another program, and does not change it: %s',
  async (line) => {
    path = join(folder, `orders-${files++}.db`)
    const database = new DatabaseSync(path)
    database.exec('CREATE TABLE customers (id)')
    database.close()
    const before = readFileSync(path)
    const { code, out, err } = await command(`${line} ~`)
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toContain(
      `${path} has no order store: it lacks the table customer_ordering_rows. Check --store.`,
    )
    expect(readFileSync(path).equals(before)).toBe(true)
  },
)

it('the command shows an order by its reference or its key, and exits with 1 if it does not exist', async () => {
  const { code, json } = await command('show in-doubt --json ~')
  expect(code).toBe(0)
  const [record] = json()
  expect(record).toMatchObject({ externalOrderId: 'in-doubt', state: 'open', ambiguous: true })
  const byKey = await command(`show --key ${record.key} ~`)
  expect(byKey.out.replace(/\d{4}-\S+Z/g, 'TIME').split('\n')).toEqual([
    'externalOrderId  in-doubt',
    `Idempotency-Key  ${record.key}`,
    'state            open: may have been charged',
    'serviceId        svc_standard',
    'target           @someone',
    'quantity         10',
    'attempts         1',
    'first sent       TIME',
    'recorded         TIME',
    '',
  ])
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

it.each([
  [503, /^still_open +server +in-doubt$/m, ''],
  [402, /^needs_attention +refused/m, 'Find out whether the order exists, then settle it with resolve.'],
])('the command exits with 3 if recover --yes leaves orders open: %i', async (status, row, note) => {
  const action = { type: 'status', status } as const
  sandbox.faults.add({ match: { operation: 'createOrder' }, times: 'always', action })
  const { code, out, err } = await command('recover --yes ~')
  expect(out).toMatch(row)
  expect(err).toContain(note)
  expect(err).not.toMatch(/create\(\)|run recover/i)
  expect(code).toBe(3)
  sandbox.expectChargedOnce('in-doubt')
  sandbox.expectNotCharged('lost')
})

it('the command recovers orders that were paid but cannot be read, and exits with 3', async () => {
  sandbox.faults.add({ times: 'always', action: { type: 'transformBody', patch: { amount: null } } })
  const { code, out, err } = await command('recover --yes ~')
  expect(out).toMatch(/^created +unreadable +ord_\w+ +in-doubt$/m)
  expect(err).toContain(': 2 created (unreadable)\n')
  expect(code).toBe(3)
})

it.each(['recover ~', 'resolve in-doubt --as abandoned ~', 'forget settled ~'])(
  'the command sends and writes nothing for "%s" without a yes',
  async (line) => {
    const requests = sandbox.requests.length
    for (const given of [{}, { reply: '' }, { reply: 'n' }, { reply: 'yesterday' }]) {
      const { code, err, asked } = await command(line, given)
      expect(code).toBe(4)
      if (line === 'recover ~')
        expect(err).toContain(`: service ${service.url}, account shop, store ${path}\n`)
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
  expect(created.out).toMatch(new RegExp(`^state +created: charged\\n[\\s\\S]*^orderId +${orderId}$`, 'm'))
  const abandoned = await command('resolve lost --as abandoned --json ~', { reply: 'yes' })
  expect(abandoned.json()).toMatchObject([{ externalOrderId: 'lost', state: 'rejected' }])
  expect(abandoned.err).not.toContain('adopted')
  const adopted = await command(`resolve lots --as created --order-id ${sandbox.addOrder({}).id} ~`)
  expect(adopted.err).toContain(': The store had no record of this REFERENCE, so the order was adopted')
  await command('forget lots --yes ~')
  // The key that was sent is abandoned.
  const shown = await command('show lost ~')
  expect(shown.out).toMatch(/^key of next call \S+$/m)
  expect(shown.out).not.toContain('Idempotency-Key')
  expect((await command('resolve settled --as abandoned --yes ~')).err).toContain(
    ': "settled" cannot be abandoned: the order was created and charged.',
  )
  expect((await command('unresolved ~')).code).toBe(0)
  sandbox.expectNotCharged('lost')
})

it('the command shows in which fields a doubtful order differs, and accepts it despite these', async () => {
  const metadata = { externalOrderId: 'lost' }
  const { id } = sandbox.addOrder({ serviceId: 'svc_standard', target: '@other', quantity: 9, metadata })
  const { code, out } = await command('reconcile ~')
  expect(code).toBe(3)
  expect(out).toMatch(/^doubtful .* quantity,target +ord_\w+ +lost$/m)
  const resolve = `resolve lost --as created --order-id ${id}`
  expect((await command(`${resolve} ~`)).err).toContain('pass --despite quantity,target.')
  const resolved = await command(`${resolve} --despite quantity,target --json ~`)
  expect(resolved).toMatchObject({ code: 0 })
  expect(resolved.json()).toMatchObject([{ state: 'created', order: { id } }])
})

it('the command recovers a doubtful order with its id, and says with which options to accept it', async () => {
  await doubtAnHourAgo()
  const metadata = { externalOrderId: 'old' }
  const { id } = sandbox.addOrder({ serviceId: 'svc_standard', target: '@someone', quantity: 9, metadata })
  const { code, out, err } = await command('recover --yes ~')
  expect(code).toBe(3)
  expect(out).toMatch(new RegExp(`^needs_attention +doubtful +${id} +old$`, 'm'))
  expect(err).toContain(`order ${id} with this reference, but with another quantity`)
  expect(err).toContain('settle it with resolve --as created --order-id ID --despite quantity.')
})

it('the command says once why recover could not look the orders up', async () => {
  await doubtAnHourAgo()
  sandbox.faults.add({ match: { operation: 'listOrders' }, action: { type: 'status', status: 403 } })
  const { out, err } = await command('recover --yes ~')
  expect(out).toMatch(/^needs_attention +past_window/m)
  expect(err.match(/GET \/v1\/orders returned 403/g)).toHaveLength(1)
})

it('the command says when an order can be resolved that a call may still be placing', async () => {
  sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'stall' } })
  await program(async (client) => {
    const left = new AbortController()
    const placing = failure(client.orders.create(order('placing'), { signal: left.signal }))
    await vi.waitFor(async () => {
      const [record] = await client.orders.remembered({ externalOrderId: 'placing' })
      expect(record?.busyUntil).toBeDefined()
      // Else the request could arrive during the next test, and use up its fault.
      expect(sandbox.faults.pending()).toEqual([])
    })
    const [record] = await client.orders.remembered({ externalOrderId: 'placing' })
    const { code, err } = await command('resolve placing --as abandoned --yes ~')
    expect(code).toBe(1)
    const end = new Date((record?.busyUntil ?? 0) + 5 * 60_000).toISOString().replace(/\.\d+/, '')
    expect(err).toContain(`Resolve the order once that call must have ended. That is after ${end}.`)
    left.abort()
    await placing
  })
})

it('the command forgets a settled order, and rejects an open one', async () => {
  vi.spyOn(SqliteStore.prototype, 'update').mockResolvedValueOnce(false)
  const overtaken = await command('forget settled --yes ~')
  expect(overtaken).toMatchObject({ code: 1, out: '' })
  expect(overtaken.err).toContain('Another call changed the record of this order')
  const done = await command('forget settled --yes ~')
  expect(done).toMatchObject({ code: 0, out: 'forgotten        settled\n' })
  const again = await command('forget settled --yes ~')
  expect(again).toMatchObject({ code: 1, out: '' })
  expect(again.err).toContain('The store has no record of this order.')
  expect(await command('forget in-doubt --yes ~')).toMatchObject({ code: 2, out: '' })
  const unknown = await command('resolve --key k$& --as abandoned --yes ~')
  expect(unknown.err).toContain(': --key k$& does not name a remembered order.')
})

it('the command prints what does not match, and its exit code speaks of that only', async () => {
  const { code, out, err, json } = await command('reconcile --json ~')
  expect(json()).toMatchObject([{ kind: 'only_local', record: { externalOrderId: 'lost' } }])
  expect(err).toContain('1 only_local')
  expect(err).toContain('2 matched')
  expect({ code, rows: out.split('\n').length }).toEqual({ code: 3, rows: 2 })
  const all = await command('reconcile --all ~')
  expect(all.out).toMatch(/^matched .* open .* in-doubt$/m)
  expect(all.out).toMatch(/^matched .* created .* settled$/m)
  const metadata = { externalOrderId: 'of another integration' }
  const { id } = sandbox.addOrder({ metadata })
  const remote = await command('reconcile ~')
  expect(remote.out).toMatch(new RegExp(`^only_remote .* ${id} +of another integration$`, 'm'))
  sandbox.removeOrder(id)
  // An order that is open but listed matches: `unresolved` speaks of it.
  await command('resolve lost --as abandoned --yes ~')
  await command('forget lost --yes ~')
  expect(await command('reconcile ~')).toMatchObject({ code: 0, out: 'none\n' })
  expect((await command('unresolved ~')).code).toBe(3)
})

it('the command shows balance and services without a store', async () => {
  expect((await command('balance --json')).json()).toMatchObject([{ currency: 'EUR' }])
  expect((await command('balance')).out).toMatch(/^balance +€\d/)
  const { out } = await command('services')
  expect(out).toMatch(/^serviceId +price +min +max +step\n/)
  expect(out).toContain('svc_standard')
  expect((await command('services --json')).json()).toContainEqual(
    expect.objectContaining({ productId: 'svc_sold_out', stockState: 'out_of_stock' }),
  )
})

it.each([
  ['CHF', 'CHF 12,345.67'],
  ['USDT', '1234567 USDT'],
])('the command prints an amount in %s the same on all machines', async (currency, expected) => {
  const format = vi.spyOn(Intl, 'NumberFormat')
  sandbox.faults.add({ action: { type: 'transformBody', patch: { amount: 1234567, currency } } })
  expect((await command('balance')).out).toBe(`balance          ${expected}\n`)
  expect(format).not.toHaveBeenCalledWith(undefined, expect.anything())
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
  ['sell ~', 'There is no command "sell"; see --help.'],
  ['recoverr ~', 'There is no command "recoverr" (did you mean recover?); see --help.'],
  ['orders lst', 'There is no command "orders lst" (did you mean orders list?); see --help.'],
  ['orders', 'orders is the first word of: orders list, orders get.'],
  ['toString', 'There is no command "toString"'],
  ['unresolved --account shop', 'Name the store of your program: --store PATH'],
  ['unresolved --store mongodb://x --account shop', '--store must be a path, or begin with postgres://'],
  ['unresolved --store missing.db --account shop', '/missing.db does not exist'],
  ['unresolved --store user=ada;password=secret --account shop', 'The file of --store does not exist.'],
  ['unresolved --store postgres:/ada:secret@db/x --account shop', 'The file of --store does not exist.'],
  ['unresolved --store postgres://ada:secret@127.0.0.1/x --account shop', 'npm install pg'],
  ['unresolved --store redis://:secret@127.0.0.1 --account shop', 'npm install redis'],
  ['unresolved --store postgres://ada:100%secret@127.0.0.1/x --account shop', 'a percent sign as %25.'],
  ['unresolved --store orders.db', '--account LABEL, or set CUSTOMER_ORDERING_ACCOUNT.'],
  ['show ~', "show requires either the order's REFERENCE or --key KEY."],
  ['show r1 --key k1 ~', "requires either the order's REFERENCE"],
  ['show r1 r2 ~', 'show takes one REFERENCE, but also got "r2"'],
  ['orders get', "orders get requires the order's ID."],
  ['recover r1 ~', 'recover takes no argument, but also got "r1"'],
  ['recover --store orders.db --account shop', 'recover requires --safe-retry-window'],
  ['unresolved ~ --safe-retry-window 20m', 'must be a whole number of milliseconds'],
  ['balance --timeout 1s', '--timeout must be a whole number of milliseconds'],
  ['balance --store x.db', 'balance has no option --store; see balance --help.'],
  ['unresolved --take-over ~', 'unresolved has no option --take-over'],
  ['resolve r1 --as created ~', '--as created requires --order-id'],
  ['resolve r1 --as abandoned --despite target ~', '--despite is only for --as created'],
  ['resolve r1 --as created --order-id o1 --despite color ~', 'despite must be an array of the fields'],
  ['orders list --limit few', '--limit must be a whole number, such as 20.'],
  ['resolve r1 --as done ~', '--as must be created or abandoned'],
  ['recover --remember nothing ~', '--remember must be id or order'],
  ['reconcile --since yesterday ~', '--since must be a time'],
  ['reconcile --since 5 ~', '--since must be a time'],
  ['recover --force ~', 'There is no option --force; see --help.'],
  ['unresolved --jsn ~', 'There is no option --jsn (did you mean --json?); see --help.'],
  ['unresolved --acount=shop ~', 'There is no option --acount (did you mean --account?); see --help.'],
  ['unresolved --json=yes ~', 'The option --json takes no value; see --help.'],
  ['unresolved ~ --server', 'The option --server requires a value; see --help.'],
  ['unresolved --server --json ~', 'The option --server requires a value; see --help.'],
  ['quickstart now', 'quickstart takes no options or arguments.'],
  ['quickstrat', 'There is no command "quickstrat" (did you mean quickstart?)'],
  ['completion tcsh', 'completion requires the name of a shell: bash, zsh or fish.'],
])('the command rejects "%s" with exit code 2', async (line, message) => {
  const { code, out, err } = await command(line)
  expect({ code, out }).toEqual({ code: 2, out: '' })
  expect(err).toContain(message)
  expect(err).not.toContain('secret')
  // The address of the service comes first, if the service could be called.
  expect(err).toMatch(/^(customer-ordering-sdk: service .*\n)?.+\n$/)
})

describe.each([
  ['p%40ss-word!', 'p@ss-word!'],
  ['secret-word', 'secret-word'],
  ['se/cret@word', 'se/cret@word'],
  ['abc', 'abc'],
])('with the password %s in the address of the store', (written, password) => {
  it.each([
    ['the address', (address: string) => `connect to ${address} failed`],
    ['the address without its scheme', (address: string) => `connect to ${address.slice(11)} failed`],
    ['the decoded password', (_: string, password: string) => `ada:${password}@127.0.0.1`],
    [
      'the password in JSON',
      (address: string, password: string) => JSON.stringify({ address, login: `ada:${password}` }),
    ],
    ['the password in base64', (_: string, password: string) => `Basic ${btoa(`ada:${password}`)}`],
  ])("the command uses the driver of the user's project, whose error repeats %s", async (_what, message) => {
    const text = `(${String(message)})(connectionString, ${JSON.stringify(password)})`
    const env = { CUSTOMER_ORDERING_STORE: `postgres://ada:${written}@127.0.0.1/x` }
    const given = { folder: projectWhosePgThrows(text), env }
    for (const line of ['unresolved --account shop', 'reconcile --account shop']) {
      const { code, err } = await command(line, given)
      expect(code).toBe(1)
      expect(err).toMatch(/^customer-ordering-sdk: /)
      for (const form of [written, password]) expect(err).not.toMatch(secret(form))
      expect(err).not.toContain(btoa(`ada:${password}`).replace(/=*$/, ''))
    }
  })
})

it.each([
  ['postgres@127.0.0.1/x', '127.0.0.1/x'],
  ['postgres:postgres@127.0.0.1/x', '127.0.0.1/x'],
  ['h1:1,h2:2/x?user=ada&password=p@secret/wo:rd9', '…'],
  ['127.0.0.1/x?password=a+s%E2%82%AC', '127.0.0.1/x'],
  ['ada:secret@127.0.0.1/x?application_name=me@Cannot', '127.0.0.1/x'],
  ['ada:p%E2%82%ACssword@127.0.0.1/x', '127.0.0.1/x'],
])('the command shows the scheme and the place of a store, but no password: %s', async (address, place) => {
  const line = `unresolved --store postgres://${address} --account shop`
  const message = '"broken " + connectionString + decodeURIComponent(connectionString.slice(11))'
  const { err } = await command(line, { folder: projectWhosePgThrows(message) })
  expect(err).toContain(`Cannot open the store postgres://${place}: broken `)
  expect(err).not.toMatch(/secret|wo:rd9|p%E2|p€ss|s€/)
})

it('the claim of a client without time limits is shown with the last date that there is', () => {
  expect(time(Number.MAX_SAFE_INTEGER)).toBe('+275760-09-13T00:00:00Z')
})

it('the command exits with 1 and one line if the service rejects the API key', async () => {
  const env = { CUSTOMER_ORDERING_API_KEY: 'a-wrong-api-key' }
  const { code, out, err } = await command('balance', { env })
  expect({ code, out }).toEqual({ code: 1, out: '' })
  expect(err.trim().split('\n')).toHaveLength(2)
  expect(err).not.toContain('a-wrong-api-key')
})

it('the command escapes what nobody sees in a store, in tables and in JSON', async () => {
  await program(async ({ orders }) => {
    failOnce('drop')
    // Bytes of another program: references of this one are checked.
    await failure(
      orders.create({ ...order('unseen'), target: 'a\u202eb\u200bc\u001b[2Jd\u009be\u00a0f\u3164g' }),
    )
  })
  for (const line of ['show unseen ~', 'show unseen --json ~']) {
    const { out } = await command(line)
    expect(out).toContain('a\\u202eb\\u200bc\\u001b[2Jd\\u009be\\u00a0f\\u3164g')
    expect(out.replaceAll('\n', '')).not.toMatch(/(?! )[\p{C}\p{Z}\p{DI}]/u)
  }
  const [record] = (await command('show unseen --json ~')).json()
  expect(record.request.target).toBe('a\u202eb\u200bc\u001b[2Jd\u009be\u00a0f\u3164g')
})

it('the command prints at most 120 columns', async () => {
  const long = 'r'.repeat(200)
  await program(async ({ orders }) => {
    failOnce('commitThenDrop')
    await failure(orders.create(order(long)))
  })
  for (const line of ['unresolved', 'reconcile --all', 'recover --yes'])
    for (const row of (await command(`${line} ~`)).lines()) expect(row.length).toBeLessThanOrEqual(120)
  expect((await command(`show ${long} ~`)).out).toContain(long)
})

it('the command prints its version and its help', async () => {
  expect(await command('--version')).toMatchObject({ code: 0, out: `${VERSION}\n` })
  const { code, out } = await command('--help')
  expect(code).toBe(0)
  expect(out).toMatch(/^customer-ordering-sdk: /)
  expect(await command('')).toMatchObject({ code: 2, out: '', err: out })
  const one = await command('resolve --help')
  expect(one.out).toMatch(/^customer-ordering-sdk resolve REFERENCE: /)
  expect(one.out).toContain('--order-id ID')
  expect(one.out).not.toContain('--take-over')
  for (const line of `${out}${one.out}`.split('\n')) expect(line.length).toBeLessThanOrEqual(120)
  const both = await command('orders --help')
  expect(both.code).toBe(0)
  for (const part of ["list: list the service's orders", '--source-system NAME', 'get ID: read one order'])
    expect(both.out).toContain(part)
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
  failOnce('drop')
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
  expect((await command('recover --yes ~')).out).toMatch(/^needs_attention +corrupt +unreadable row:\S+$/m)
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
  ['no more', undefined],
  ['yes', 'yes\n'],
])('the command interprets the input %s at its question', async (name, typed) => {
  const input = new PassThrough()
  const output = Object.assign(new PassThrough(), { isTTY: true })
  const reply = askBy(input, output)('Continue? ')
  if (typed === undefined) input.end()
  else input.write(typed)
  expect(await reply).toBe(name === 'yes' ? 'yes' : '')
})

it('the command shows progress only to a person who does not see the rows, and clears it', () => {
  for (const [rowsSeen, expected] of [
    [false, '3 … \r\u001b[Ka message'],
    [true, 'a message'],
  ] as const) {
    const [stdout, stderr] = [new PassThrough(), new PassThrough()]
    const streams = {
      stdin: Object.assign(new PassThrough(), { isTTY: true }),
      stdout: Object.assign(stdout, { isTTY: rowsSeen }),
      stderr: Object.assign(stderr, { isTTY: true }),
    }
    const process = { ...streams, once: () => {}, env: {}, cwd: () => '.' }
    // A process has far more, which a terminal does not use.
    const terminal = terminalOf(process as unknown as NodeJS.Process)
    terminal.progress('3 … ')
    terminal.err('a message')
    expect(String(stderr.read())).toBe(expected)
  }
})

it.each([
  ['SIGINT', EXIT.interrupted],
  ['SIGTERM', EXIT.terminated],
] as const)('the command ends %s after a while, even if a database keeps it waiting', (signal, exit) => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const ended = vi.fn()
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() }
  const process = Object.assign(new EventEmitter(), { ...streams, env: {}, cwd: () => '.', exit: ended })
  const { stop } = terminalOf(process as unknown as NodeJS.Process)
  const timer = vi.spyOn(globalThis, 'setTimeout')
  process.emit(signal)
  expect(stop.aborted).toBe(true)
  // A command that has ended by then must not wait.
  expect(timer.mock.results[0]?.value.hasRef()).toBe(false)
  expect(ended).not.toHaveBeenCalled()
  vi.advanceTimersByTime(15_000)
  expect(ended).toHaveBeenCalledWith(exit)
})

it('the command reads account, store, server, window and timeouts from the environment', async () => {
  const env = {
    CUSTOMER_ORDERING_STORE: path,
    CUSTOMER_ORDERING_ACCOUNT: 'shop',
    CUSTOMER_ORDERING_SERVER: service.url,
    CUSTOMER_ORDERING_SAFE_RETRY_WINDOW: '1200000',
    CUSTOMER_ORDERING_TIMEOUT: '5000',
    CUSTOMER_ORDERING_TOTAL_TIMEOUT: '9000',
  }
  expect((await command('unresolved', { env })).lines()).toHaveLength(3)
  // An option that is given wins, and a command ignores variables that it does not read.
  expect((await command('unresolved --account nobody', { env })).code).toBe(2)
  expect((await command('balance', { env })).code).toBe(0)
  const wrong = await command('balance', { env: { CUSTOMER_ORDERING_TIMEOUT: 'soon' } })
  expect(wrong).toMatchObject({ code: 2, out: '' })
  expect((await command('recover --yes', { env })).code).toBe(0)
})

it.each([
  ['https://elsewhere.example', 'elsewhere.example'],
  ['elsewhere.example', 'elsewhere.example'],
  ['https://elsewhere.example:8443/api', 'elsewhere.example:8443'],
])('the command warns if --server %s and the base URL are not of one host', async (server, host) => {
  await program(({ orders }) => orders.create(order('other')), { server })
  const { err, code } = await command(`recover --yes --server ${server} ~`)
  expect(err).toContain(`warning: --server names ${host}, but requests go to ${new URL(service.url).host}.`)
  expect(code).toBe(0)
  expect((await command(`recover --yes --server ${service.url} ~`)).err).not.toContain('warning')
})

it('the command reports a wait of a second or more while it waits', async () => {
  sandbox.faults.add({ action: { type: 'status', status: 429, headers: { 'retry-after': '1' } } })
  const { err, code } = await command('balance')
  expect(err).toMatch(/: waiting 1 s \(429\): GET \/v1\/balance\n$/)
  expect(code).toBe(0)
})

it("the command lists the service's orders, and reads one", async () => {
  const { lines, code } = await command('orders list')
  expect(code).toBe(0)
  expect(lines()[0]).toMatch(/^orderId +status +amount +externalOrderId +serviceId +quantity +target$/)
  expect(lines()).toHaveLength(3)
  const { orderId = '' } = sandbox.expectChargedOnce('settled')
  expect(lines().join('\n')).toMatch(
    new RegExp(`^${orderId} +pending +2500 +settled +svc_standard +10 +@someone$`, 'm'),
  )
  expect((await command('orders list --limit 1')).lines()).toHaveLength(2)
  expect((await command('orders list --source-system nobody')).out).toBe('none\n')
  const one = await command(`orders get ${orderId}`)
  expect(one.lines().slice(-2)).toEqual(['quantity         10', 'target           @someone'])
  const json = await command(`orders get ${orderId} --json`)
  expect(json.json()).toMatchObject([{ id: orderId, amount: 2500 }])
  expect(await command('orders get ord_nobody')).toMatchObject({ code: 1, out: '' })
})

it('the command prints each row as soon as it is known, and what was settled when it is interrupted', async () => {
  const stop = new AbortController()
  // The first row stops the command. The second order may have been sent at the same time.
  const { code, out, err } = await command('recover --yes ~', {
    stop: stop.signal,
    onOut: (text) => {
      if (text.includes('created')) stop.abort(new Interrupted(EXIT.interrupted))
    },
  })
  expect(code).toBe(130)
  expect(out).toMatch(/^created +ord_\w+ +(in-doubt|lost)$/m)
  expect(err).toMatch(/interrupted, after [12] created\. Run the command again\.\n$/)
  // No lease is left, so the next run need not wait.
  for (const record of (await command('unresolved --json ~')).json()) expect(record.busyUntil).toBeUndefined()
  expect((await command('recover --yes ~')).code).toBe(0)
  for (const reference of ['in-doubt', 'lost', 'settled']) sandbox.expectChargedOnce(reference)
})

/** A project whose driver for PostgreSQL throws an error with this message, a text of JavaScript. */
function projectWhosePgThrows(message: string): string {
  const project = mkdtempSync(join(folder, 'project-'))
  mkdirSync(join(project, 'node_modules/pg'), { recursive: true })
  const driver = `exports.Pool = class { constructor({ connectionString }) { throw new Error(${message}) } }`
  writeFileSync(join(project, 'node_modules/pg/index.js'), driver)
  return project
}

/** A short password may be part of a word, such as the path `abc`. */
function secret(text: string): RegExp {
  const literal = text.replace(/\W/g, '\\$&')
  return text.length < 4 ? new RegExp(`:${literal}@`) : new RegExp(literal)
}
