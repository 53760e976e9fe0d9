/** What a new process does with the packed file. */

import { describe, expect, inject, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { run } from '../support/run.ts'

const inConsumer = (env: object = {}) => ({
  cwd: inject('consumer'),
  env: { ...process.env, NODE_OPTIONS: '', ...env },
})

/** Runs a program, and returns the value of this expression at its end. */
async function valueAfter<Value>(program: string, expression: string, ...flags: string[]): Promise<Value> {
  const code = `${program}\nconsole.log(JSON.stringify(${expression}))`
  const { stdout } = await run(process.execPath, [...flags, '--input-type=module', '-e', code], inConsumer())
  return JSON.parse(stdout)
}

/** The modules that a program has loaded: files of packages, and Node's own modules. */
const loadedBy = (program: string): Promise<{ files: string[]; own: string[] }> =>
  valueAfter(
    `
    import { createRequire, registerHooks } from 'node:module'
    const require = createRequire(process.cwd() + '/program.js')
    const files = []
    const before = new Set(process.moduleLoadList)
    registerHooks({
      load(url, context, next) {
        files.push(url)
        return next(url, context)
      },
    })
    ${program}
    const own = process.moduleLoadList.filter((name) => !before.has(name))`,
    `{ files: files.map((url) => url.split('/node_modules/').pop()), own }`,
  )

const made = `new CustomerOrderingClient({ baseUrl: 'https://api.example.com', apiKey: 'k' })`

describe.each([
  ['import', `const { CustomerOrderingClient } = await import('customer-ordering-sdk'); ${made}`],
  ['require', `const { CustomerOrderingClient } = require('customer-ordering-sdk'); ${made}`],
])('a client that was made after %s', (_how, program) => {
  test('a new client has loaded one file, and has made Node load neither fetch nor crypto', async () => {
    const { files, own } = await loadedBy(program)
    expect(files).toEqual([expect.stringMatching(/^customer-ordering-sdk\/dist\/node\/index\.c?js$/)])
    expect(own.filter((name) => /undici|webstreams|crypto|http|net$|tls/.test(name))).toEqual([])
  })
})

test('the test detects a client that loads more', async () => {
  const { files, own } = await loadedBy(`await import('ky'); new Request('https://api.example.com')`)
  expect(files.length).toBeGreaterThan(1)
  expect(own.filter((name) => /undici/.test(name))).not.toEqual([])
})

/**
 * Counts how often a program compiles code from a string. A content security policy reports this
 * even if the error is caught.
 */
const generatedBy = (program: string): Promise<{ generated: number; ending: string }> =>
  valueAfter(
    `
    let generated = 0
    const count = { apply: (...all) => (generated++, Reflect.apply(...all)), construct: (...all) => (generated++, Reflect.construct(...all)) }
    globalThis.Function = new Proxy(Function, count)
    globalThis.eval = new Proxy(eval, count)
    let ending = ''
    ${program}`,
    '{ generated, ending }',
    '--disallow-code-generation-from-strings',
  )

test.each([
  ['valid', '250', 'read'],
  ['not valid', '2.5', 'InvalidResponseError'],
])('reading a list whose rows are %s generates no code', async (_what, amount, ending) => {
  const program = `
    const { CustomerOrderingClient } = await import('customer-ordering-sdk')
    const rows = JSON.stringify([{ id: 'ord_1', status: 'pending', amount: ${amount} }])
    const options = { baseUrl: 'https://api.example.com', apiKey: 'k', fetch: async () => new Response(rows) }
    ending = await new CustomerOrderingClient(options).orders.list().then(() => 'read', (error) => error.name)`
  expect(await generatedBy(program)).toEqual({ generated: 0, ending })
})

test('the test detects a library that generates code', async () => {
  const { generated } = await generatedBy(
    `const zod = await import('zod'); zod.looseObject({ id: zod.string() }).safeParse({ id: 'x' })`,
  )
  expect(generated).toBeGreaterThan(0)
})

test('the command of the packed file says why it cannot connect, as the client in Node does', async () => {
  const env = {
    CUSTOMER_ORDERING_BASE_URL: `http://127.0.0.1:${await freePort()}`,
    CUSTOMER_ORDERING_API_KEY: 'key-of-nobody-at-all',
    CUSTOMER_ORDERING_TOTAL_TIMEOUT: '2000',
  }
  const balance = run('npx', ['--offline', 'customer-ordering-sdk', 'balance'], inConsumer(env))
  await expect(balance).rejects.toMatchObject({ stderr: expect.stringContaining('ECONNREFUSED') })
})
