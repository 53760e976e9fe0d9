import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, inject, test } from 'vitest'

const run = promisify(execFile)

/**
 * The modules that a new process has loaded after a program: files of packages, and Node's own
 * modules.
 */
async function loadedBy(program: string): Promise<{ files: string[]; own: string[] }> {
  const code = `
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
    const own = process.moduleLoadList.filter((name) => !before.has(name))
    console.log(JSON.stringify({ files: files.map((url) => url.split('/node_modules/').pop()), own }))`
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', code], {
    cwd: inject('consumer'),
    env: { ...process.env, NODE_OPTIONS: '' },
  })
  return JSON.parse(stdout)
}

const made = `new CustomerOrderingClient({ baseUrl: 'https://api.example.com', apiKey: 'k' })`

describe.each([
  ['import', `const { CustomerOrderingClient } = await import('customer-ordering-sdk'); ${made}`],
  ['require', `const { CustomerOrderingClient } = require('customer-ordering-sdk'); ${made}`],
])('a client that was made after %s', (_how, program) => {
  test('a new client has loaded one file', async () => {
    const { files } = await loadedBy(program)
    expect(files).toEqual([expect.stringMatching(/^customer-ordering-sdk\/dist\/node\/index\.c?js$/)])
  })

  test('a new client has made Node load neither fetch nor crypto', async () => {
    const { own } = await loadedBy(program)
    expect(own.filter((name) => /undici|webstreams|crypto|http|net$|tls/.test(name))).toEqual([])
  })
})

test('the test detects a client that loads more', async () => {
  const { files } = await loadedBy(`await import('ky')`)
  expect(files.length).toBeGreaterThan(1)
  const { own } = await loadedBy(`new Request('https://api.example.com')`)
  expect(own.filter((name) => /undici/.test(name))).not.toEqual([])
})
