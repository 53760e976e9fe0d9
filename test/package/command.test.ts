import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { promisify } from 'node:util'
import { expect, inject, test } from 'vitest'

const run = promisify(execFile)

test('the command of the packed file says why it cannot connect, as the client in Node does', async () => {
  const port = await closedPort()
  const { stderr } = await run('npx', ['--offline', 'customer-ordering-sdk', 'balance'], {
    cwd: inject('consumer'),
    env: {
      ...process.env,
      NODE_OPTIONS: '',
      CUSTOMER_ORDERING_BASE_URL: `http://127.0.0.1:${port}`,
      CUSTOMER_ORDERING_API_KEY: 'key-of-nobody-at-all',
      CUSTOMER_ORDERING_TOTAL_TIMEOUT: '2000',
    },
  }).catch((error: { readonly stderr: string }) => error)
  expect(stderr).toContain('ECONNREFUSED')
})

async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('not a port')
  return address.port
}
