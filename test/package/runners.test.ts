import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { stripVTControlCharacters } from 'node:util'
import { expect, inject } from 'vitest'
import { root } from '../../tools/build/ensure-built.ts'
import { cell, installed, type Tool } from './cell.ts'
import { engines } from './node-versions.ts'

interface Runner extends Tool {
  readonly flags: readonly string[]
  /** How it reports its counts: four tests that fail on purpose, and one that passes. */
  readonly counts: readonly RegExp[]
  /** How it shows the expected and the actual value. */
  readonly compared: (wanted: number, found: number) => RegExp
}

const program = 'charged-twice.test.mjs'

const runners: readonly Runner[] = [
  {
    ...installed('vitest', root),
    flags: [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--globals', '--root', '.', program],
    counts: [/Tests +4 failed \| 1 passed \(5\)/],
    compared: (wanted, found) => new RegExp(`- ${wanted}\\n\\+ ${found}\\n`),
  },
  {
    ...installed('jest', engines),
    // Without this flag, Jest does not load ES modules through Node, and ky has no other form.
    flags: [
      '--experimental-vm-modules',
      join(engines, 'node_modules/jest/bin/jest.js'),
      '--rootDir=.',
      // The program needs no Babel, which is not installed.
      '--transform={}',
      `--testMatch=**/${program}`,
    ],
    counts: [/Tests: +4 failed, 1 passed, 5 total/],
    compared: (wanted, found) =>
      new RegExp(`Expected value expect\\w+ to:\\s+${wanted}\\s+Received:\\s+${found}\\s`),
  },
  {
    name: 'node:test',
    version: process.version,
    flags: ['--test', '--test-reporter=spec', program],
    counts: [/fail 4\n/, /pass 1\n/],
    compared: (wanted, found) => new RegExp(`actual: ${found},\\s+expected: ${wanted},`),
  },
]

for (const runner of runners)
  cell(
    runner,
    'a failed assertion of the sandbox shows the message, both charges, the comparison and its line',
    async () => {
      const { output, exitCode } = await runWith(runner.name, runner.flags)
      expect(exitCode).toBe(1)
      for (const count of runner.counts) expect(output).toMatch(count)
      const charge = 'ord_\\w{12}: 500 minor units of EUR, key [\\w-]{36}, externalOrderId "cart-7"'
      for (const [message, wanted, found, line] of [
        ['expected exactly one charge for "cart-7", found 2:', 1, 2, "expectChargedOnce('cart-7')"],
        ['expected no charge for "cart-7", found 2:', 0, 2, "expectNotCharged('cart-7')"],
        ['expected 3 charges in all, found 2:', 3, 2, 'expectCharges(3)'],
        [
          'expected the wallet of cus_personal to hold 999500, found 999000 minor units of EUR. Charges:',
          999_500,
          999_000,
          'expectBalance(999_500)',
        ],
      ] as const) {
        const escaped = message.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
        expect(output).toMatch(new RegExp(`${escaped}\\n +${charge}\\n +${charge}\\n`))
        expect(output).toMatch(runner.compared(wanted, found))
        const [row, column] = placeOf(line)
        expect(output).toContain(`${program}:${row}:${column}`)
      }
    },
  )

async function runWith(
  name: string,
  flags: readonly string[],
): Promise<{ readonly output: string; readonly exitCode: unknown }> {
  // Do not inherit flags of Vitest's workers, which do not fit this process.
  const { NODE_OPTIONS: _, NODE_TEST_CONTEXT: __, ...env } = process.env
  const child = spawn(process.execPath, flags, {
    cwd: inject('consumer'),
    env: { ...env, RUNNER: name },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = new Promise((resolve, reject) => child.once('exit', resolve).once('error', reject))
  const texts = await Promise.all([text(child.stdout), text(child.stderr)])
  return { output: stripVTControlCharacters(texts.join('\n')), exitCode: await ended }
}

/** Row and column of this text in the program, counted from 1. */
function placeOf(line: string): readonly [row: number, column: number] {
  const rows = readFileSync(join(inject('consumer'), program), 'utf8').split('\n')
  const row = rows.findIndex((candidate) => candidate.includes(line))
  return [row + 1, (rows[row]?.indexOf(line) ?? -1) + 1]
}
