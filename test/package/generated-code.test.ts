import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, inject, test } from 'vitest'

const run = promisify(execFile)

/**
 * Counts how often a program in a new process compiles code from a string. A content security
 * policy reports this even if the error is caught.
 */
async function generatedBy(program: string): Promise<{ generated: number; ending: string }> {
  const code = `
    let generated = 0
    const count = { apply: (...all) => (generated++, Reflect.apply(...all)), construct: (...all) => (generated++, Reflect.construct(...all)) }
    const Counting = new Proxy(Function, count)
    globalThis.Function = Counting
    globalThis.eval = new Proxy(eval, count)
    let ending = ''
    ${program}
    console.log(JSON.stringify({ generated, ending }))`
  const { stdout } = await run(
    process.execPath,
    ['--disallow-code-generation-from-strings', '--input-type=module', '-e', code],
    { cwd: inject('consumer'), env: { ...process.env, NODE_OPTIONS: '' } },
  )
  return JSON.parse(stdout)
}

const listing = (amount: string): string => `
  const { CustomerOrderingClient } = await import('customer-ordering-sdk')
  const rows = JSON.stringify([{ id: 'ord_1', status: 'pending', amount: ${amount} }])
  const client = new CustomerOrderingClient({
    baseUrl: 'https://api.example.com',
    apiKey: 'k',
    fetch: async () => new Response(rows),
  })
  ending = await client.orders.list().then(() => 'read', (error) => error.name)`

test('reading a list generates no code, whether its rows are valid or not', async () => {
  expect(await generatedBy(listing('250'))).toEqual({ generated: 0, ending: 'read' })
  expect(await generatedBy(listing('2.5'))).toEqual({ generated: 0, ending: 'InvalidResponseError' })
})

test('the test detects a library that generates code', async () => {
  const { generated } = await generatedBy(
    `const zod = await import('zod'); zod.looseObject({ id: zod.string() }).safeParse({ id: 'x' })`,
  )
  expect(generated).toBeGreaterThan(0)
})
