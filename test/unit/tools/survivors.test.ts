import { expect, it } from 'vitest'
import { MODULES } from '../../../tools/packages/mutation/modules.ts'
import { nameOf, survivors } from '../../../tools/packages/mutation/survivors.ts'

const mutation = (original: string, replacement: string) =>
  nameOf({ folder: 'orders', mutator: 'ConditionalExpression', original, replacement })

it.each([
  ['a name was changed', 'found.record?.key', 'loaded.entry?.name'],
  ['a private field was renamed', 'this.#live.get(id)', 'this.#calls.find(row)'],
  ['lines were broken otherwise', '{ return undefined }', '{\n  // Why.\n  return undefined\n}'],
])('a surviving mutant is recognised after %s', (_change, original, renamed) => {
  expect(mutation(renamed, '{}')).toBe(mutation(original, '{}'))
})

it.each([
  ['another operator', 'a === b', 'a !== b'],
  ['another string', "step.action === 'reopen'", "step.action === 'read'"],
  ['another number of parts', 'a.b', 'a.b.c'],
  ['a check of the type', 'a instanceof B', 'a === B'],
])('a surviving mutant is not confused with one with %s', (_difference, original, other) => {
  expect(mutation(other, 'true')).not.toBe(mutation(original, 'true'))
})

it('a surviving mutant belongs to a mutated folder', () => {
  const folders = MODULES.map((module) => module.folder)
  expect(survivors.filter(({ folder }) => !folders.includes(folder))).toEqual([])
})
