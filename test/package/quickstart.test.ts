import { expect, inject, test } from 'vitest'
import { run } from '../support/run.ts'

test('npx runs the quick start of the packed file: a lost response, and one charge', async () => {
  const began = performance.now()
  // Without the registry: the command is in the installed package.
  const { stdout } = await run('npx', ['--offline', 'customer-ordering-sdk', 'quickstart'], {
    cwd: inject('consumer'),
    env: { ...process.env, NODE_OPTIONS: '' },
  })
  const keys = [...stdout.matchAll(/-> POST \/v1\/orders, Idempotency-Key (\S+)/g)].map(([, key]) => key)
  expect(keys).toHaveLength(2)
  expect(keys[1]).toBe(keys[0])
  expect(stdout).toMatch(/<- no response: connection failed\n[\s\S]*<- 201\n/)
  expect(stdout).toContain('charged €5.00, once\n')
  // Five seconds on a quiet machine.
  expect(performance.now() - began).toBeLessThan(30_000)
})
