import { expect, test } from 'vitest'
import * as nodeFetch from '../../../src/http/node-fetch.ts'
import * as proof from '../../../src/http/proof.ts'
import * as withoutNode from '../../../src/http/without-node.ts'

test('the build for browsers replaces every function that only Node can use', () => {
  expect(Object.keys(withoutNode).sort()).toEqual([...Object.keys(nodeFetch), ...Object.keys(proof)].sort())
})

test('without Node, no error proves anything, and an error keeps its name and its stack frames', () => {
  const error = new TypeError('secret')
  expect(withoutNode.isNodeFetch()).toBe(false)
  expect(withoutNode.provenUnsent()).toBe(false)
  expect(withoutNode.isUndecodable()).toBe(false)
  for (const thrown of [error, 'secret', undefined, { name: 'se cret' }])
    for (const withFrames of [true, false])
      expect(withoutNode.detailOf(thrown, withFrames)).toEqual(proof.detailOf(thrown, withFrames))
  expect(withoutNode.detailOf(error, true).frames).toContain('without-node.test.ts')
})
