import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createSandbox, parseFaultRules, sandboxPresets } from 'customer-ordering-sdk/sandbox'
import { describe, expect, test } from 'vitest'
import { createControl } from '../../src/sandbox/control/control.ts'

const page = readFileSync(new URL('../../docs/guide/sandbox.md', import.meta.url), 'utf8')

/** Names in the first column of the table under this header row. */
function firstColumn(header: string): readonly string[] {
  const rows = page.split(`\n${header}\n`)[1]?.split('\n\n')[0]?.split('\n').slice(1) ?? []
  return rows.flatMap((row) =>
    [...(row.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? ''),
  )
}

describe('docs/guide/sandbox.md', () => {
  test('docs/guide/sandbox.md lists every switch', () => {
    expect(firstColumn('| switch | values (default first) |').toSorted()).toEqual(
      Object.keys(createSandbox().behaviour).sort(),
    )
  })

  test('docs/guide/sandbox.md lists every preset', () => {
    expect(firstColumn('| preset | the service … |')).toEqual(Object.keys(sandboxPresets))
  })

  test('docs/guide/sandbox.md lists every action', () => {
    // An unknown rule type is rejected with the list of all types.
    let refusal = ''
    try {
      parseFaultRules('[{"action":{"type":"?"}}]')
    } catch (error) {
      refusal = String(error)
    }
    const known = /expected (.*), got/.exec(refusal)?.[1]
    expect(
      firstColumn('| action | the service … | charged? |')
        .map((name) => JSON.stringify(name))
        .toSorted(),
    ).toEqual(known?.split(' or ').sort())
  })

  test('docs/guide/sandbox.md lists the catalogue', () => {
    expect(firstColumn('| `serviceId` | price per unit | quantities | note |')).toEqual(
      createSandbox()
        .services()
        .map(({ productId }) => productId),
    )
  })

  test("docs/guide/sandbox.md shows a valid fault file, and the default seed's API key", () => {
    const [, json = ''] = /```json\n([\s\S]*?)```/.exec(page) ?? []
    expect(parseFaultRules(json)).toHaveLength(2)
    expect(page).toContain(createSandbox().apiKey)
  })

  test('docs/guide/sandbox.md lists every flag of the command', () => {
    const main = fileURLToPath(new URL('../../src/command/main.ts', import.meta.url))
    const help = execFileSync(process.execPath, [main, 'sandbox', '--help'], { encoding: 'utf8' })
    const flags = [...help.matchAll(/^ {2}(--[\w-]+)/gm)].map(([, flag]) => flag)
    const listed = firstColumn('| flag | effect |').map((name) => name.split(' ')[0])
    expect(listed.toSorted()).toEqual(flags.toSorted())
  })

  test('docs/guide/sandbox.md lists every call of the control API', () => {
    const control = createControl(createSandbox())
    const { body } = control({ method: 'GET', path: '/', query: new URLSearchParams(), body: '' })
    const listed = firstColumn('| below `/__sandbox` | effect |').map((name) => name.replace(/=\w+/g, ''))
    expect(body).toEqual(listed)
  })
})

test('docs/guide/testing.md shows a valid fault script', () => {
  const text = readFileSync(new URL('../../docs/guide/testing.md', import.meta.url), 'utf8')
  const script = /```json\n([\s\S]*?)```/.exec(text)?.[1] ?? ''
  expect(parseFaultRules(script)).toHaveLength(1)
})
