import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { storeContract } from 'customer-ordering-sdk/stores/contract'
import { expect, it } from 'vitest'
import { MemoryStore } from '../../src/stores/memory.ts'
import { FULL } from '../support/effort.ts'
import { CollectingRunner } from './support/collecting-runner.ts'

function registeredTitles(extra: Partial<Parameters<typeof storeContract>[0]>): readonly string[] {
  const runner = new CollectingRunner()
  storeContract({ createStore: () => new MemoryStore(), ...extra, test: runner })
  return runner.titles
}

if (FULL)
  it('the contract runs under node:test, with every test it has', { timeout: 120_000 }, async () => {
    const script = fileURLToPath(new URL('processes/node-test.ts', import.meta.url))
    // Do not inherit flags of Vitest's workers, which do not fit this process.
    const { NODE_OPTIONS: _, ...env } = process.env
    const child = spawn(process.execPath, ['--test', '--test-reporter=tap', script], { env })
    const [output, exitCode] = await Promise.all([
      text(child.stdout),
      new Promise((resolve) => child.once('exit', resolve)),
    ])
    const openAnother = () => new MemoryStore()
    const expected = [
      ...registeredTitles({}),
      ...registeredTitles({ openSecond: openAnother, reopenStore: openAnother }),
    ]
    expect(output).toContain(`# pass ${expected.length}\n`)
    expect(output).toContain('# fail 0\n')
    expect(exitCode).toBe(0)
  })

it('every test of the contract has a unique title', () => {
  const openAnother = () => new MemoryStore()
  const titles = registeredTitles({ openSecond: openAnother, reopenStore: openAnother })
  expect(new Set(titles).size).toBe(titles.length)
})

it('the contract omits exactly the tests whose options are missing', () => {
  const openAnother = () => new MemoryStore()
  const without = registeredTitles({})
  const all = registeredTitles({ openSecond: openAnother, reopenStore: openAnother })
  expect(all.filter((title) => !without.includes(title))).toEqual([
    'the next read through another handle sees a resolved write',
    "exactly one of several racing inserts through two handles wins, and the losers get the winner's row",
    'exactly one of several racing updates through two handles wins',
    'clients of two handles that read and update in a loop lose no update',
    'concurrent histories through two handles are linearizable for every row',
    'closing one handle leaves the other working',
    'rows survive closing and reopening the store',
  ])
  expect(without.filter((title) => !all.includes(title))).toEqual([
    'a store that the suite cannot reopen declares durability memory',
  ])
})
