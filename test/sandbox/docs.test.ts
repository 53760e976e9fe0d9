import { readFileSync } from 'node:fs'
import { createSandbox, parseFaultRules, sandboxPresets } from 'customer-ordering-sdk/sandbox'
import { describe, expect, test } from 'vitest'

const page = readFileSync(new URL('../../docs/sandbox.md', import.meta.url), 'utf8')

/** Names in the first column of the table under this header row. */
function firstColumn(header: string): readonly string[] {
  const rows = page.split(`\n${header}\n`)[1]?.split('\n\n')[0]?.split('\n').slice(1) ?? []
  return rows.flatMap((row) =>
    [...(row.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? ''),
  )
}

describe('docs/sandbox.md', () => {
  test('lists every switch', () => {
    expect(firstColumn('| switch | values (default first) |').toSorted()).toEqual(
      Object.keys(createSandbox().behaviour).sort(),
    )
  })

  test('lists every preset', () => {
    expect(firstColumn('| preset | the service … |')).toEqual(Object.keys(sandboxPresets))
  })

  test('lists every action', () => {
    // A rule of an unknown kind is refused with all the kinds there are.
    let refusal = ''
    try {
      parseFaultRules('[{"action":{"type":"?"}}]')
    } catch (error) {
      refusal = String(error)
    }
    const known = /expected (.*), got/.exec(refusal)?.[1]
    expect(
      firstColumn('| action | what happens | charged? |')
        .map((name) => JSON.stringify(name))
        .toSorted(),
    ).toEqual(known?.split(' or ').sort())
  })

  test('lists the catalogue', () => {
    expect(firstColumn('| `serviceId` | price per unit | quantities | |')).toEqual(
      createSandbox()
        .services()
        .map(({ productId }) => productId),
    )
  })

  test('shows a fault file that is accepted, and the API key of the default seed', () => {
    const example = /```json\n([\s\S]*?)```/.exec(page)?.[1] ?? ''
    expect(parseFaultRules(example)).toHaveLength(2)
    expect(page).toContain(createSandbox().apiKey)
  })
})

test('docs/testing-your-app.md shows a fault script that is accepted', () => {
  const text = readFileSync(new URL('../../docs/testing-your-app.md', import.meta.url), 'utf8')
  const script = /```json\n([\s\S]*?)```/.exec(text)?.[1] ?? ''
  expect(parseFaultRules(script)).toHaveLength(1)
})
