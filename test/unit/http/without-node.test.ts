import { expect, test } from 'vitest'
import * as node from '../../../src/http/node.ts'
import * as withoutNode from '../../../src/http/without-node.ts'

test('the build for browsers replaces every function that only Node can use', () => {
  expect(Object.keys(withoutNode).sort()).toEqual(Object.keys(node).sort())
})

test('without Node, no error proves anything, and an error keeps its name', () => {
  expect(withoutNode.isNodeFetch()).toBe(false)
  expect(withoutNode.provenUnsent()).toBe(false)
  expect(withoutNode.isUndecodable()).toBe(false)
  for (const thrown of [new TypeError('secret'), 'secret', undefined, { name: 'se cret' }])
    expect(withoutNode.wordsOf(thrown)).toEqual(node.wordsOf(thrown))
})
