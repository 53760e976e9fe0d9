/**
 * Sends every call of the sandbox's tests through Prism, with its recorded response:
 *
 * node --test suite.check.ts
 *
 * First, the tests run and record their calls. They run in every preset
 * (test/sandbox/document.test.ts), with their own clocks, in one process with the sandbox. A
 * minimal server therefore replays the responses for Prism.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Exchange } from '../../../test/sandbox/recording.ts'
import { type Prism, startPrism, violationsOf } from './prism.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../..', import.meta.url))
const timeout = 300_000

let folder = ''
let exchanges: readonly Exchange[] = []
let upstream: Server
let prism: Prism

before(
  async () => {
    folder = await mkdtemp(join(tmpdir(), 'exchanges-'))
    const record = join(folder, 'exchanges.jsonl')
    const vitest = join(root, 'node_modules/vitest/vitest.mjs')
    await run(process.execPath, [vitest, 'run', '--project', 'sandbox', '--reporter=dot'], {
      cwd: root,
      maxBuffer: 64 * 1024 * 1024,
      env: { ...process.env, SANDBOX_RECORDING: record },
    })
    exchanges = (await readFile(record, 'utf8'))
      .trim()
      .split('\n')
      .map((line): Exchange => JSON.parse(line))
    upstream = createServer((request, response) => {
      request.resume()
      const answer = exchanges[Number(request.headers['x-exchange'])]?.answer
      assert.ok(answer !== undefined)
      response.writeHead(answer.status, answer.headers).end(answer.body)
    })
    await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
    prism = await startPrism(`http://127.0.0.1:${(upstream.address() as AddressInfo).port}`)
  },
  { timeout },
)
after(async () => {
  prism?.stop()
  upstream?.close()
  await rm(folder, { recursive: true, force: true })
})

/** Prism does not respond to a request whose body is broken JSON. */
function isReadable(body: string): boolean {
  try {
    return body === '' || JSON.parse(body) !== undefined
  } catch {
    return false
  }
}

test('the description allows every response of the sandbox in its tests', { timeout }, async () => {
  const seen = new Set<string>()
  const complaints: string[] = []
  let sent = 0
  for (const [index, { operation, madeByFault, request, answer }] of exchanges.entries()) {
    // Skip undescribed paths, and responses of faults, which are wrong on purpose.
    if (operation === null || madeByFault || !isReadable(request.body)) continue
    const { method, path, headers, body } = request
    const response = await fetch(prism.url + path, {
      method,
      headers: { ...headers, 'x-exchange': String(index) },
      signal: AbortSignal.timeout(20_000),
      ...(body !== '' && { body }),
    })
    const text = await response.text()
    const place = `${method} ${path} ${JSON.stringify(headers)} ${body}: ${response.status} ${text}`
    const violations = violationsOf(response)
    const isWrong = violations.some(({ location }) => location[0] !== 'request')
    if (isWrong || response.status !== answer.status || text.includes('stoplight.io'))
      complaints.push(`${place} ${JSON.stringify(violations)}`.slice(0, 1000))
    // The description must allow every request that the sandbox accepted as an order.
    if (operation === 'createOrder' && answer.status === 201 && violations.length > 0 && !/\.\d/.test(body))
      complaints.push(`accepted, although ${JSON.stringify(violations)}: ${place}`.slice(0, 1000))
    seen.add(`${operation} ${answer.status}`)
    sent++
  }
  console.log(`${sent} of ${exchanges.length} exchanges, ${seen.size} kinds of answers`)
  assert.deepEqual(complaints.slice(0, 20), [])
  assert.ok(sent > 1000, 'too few calls were recorded')
})
