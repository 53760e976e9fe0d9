/** Replaces node.ts in builds for browsers, where no error proves anything. */
import { bare, isObject } from '../defined.ts'
import type { FailureDetail } from './node.ts'

export const isNodeFetch = (): false => false
export const provenUnsent = (): false => false
export const isUndecodable = (): false => false

export function wordsOf(error: unknown): FailureDetail {
  const name = isObject(error) ? error['name'] : undefined
  return bare({ name: typeof name === 'string' && /^[A-Za-z]{1,64}$/.test(name) ? name : 'Error' })
}
