import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { sample } from '../../support/effort.ts'
import { decisionsOver, FIXTURE, type Fixture, leave, SCENES } from './scenes.ts'

const fixture: Fixture = JSON.parse(await readFile(FIXTURE, 'utf8'))

it.each(sample(Object.entries(fixture), 6))('old rows lead to the same decisions: %s', async (_, stored) => {
  expect(await decisionsOver(stored)).toEqual(stored.decisions)
})

it.each(SCENES.map((scene) => [scene[0], scene] as const))(
  'this build stores the same rows: %s',
  async (what, scene) => {
    const { rows } = await leave(scene)
    const now = new Set(rows.map(({ id, open, state }) => `${id} ${open} ${state}`))
    // An anonymous order no longer leaves the previous one behind.
    const then = fixture[what]?.rows.map(({ id, open, state }) => `${id} ${open} ${state}`)
    expect([...now].filter((row) => !then?.includes(row))).toEqual([])
  },
)
