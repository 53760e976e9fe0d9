/** Replaces proof.ts and node-fetch.ts in builds for browsers, where no error proves anything. */
import { bare, defined, isObject } from '../defined.ts'
import { type FailureDetail, framesOf, nameOf } from './failure-detail.ts'

export const isNodeFetch = (): false => false
export const provenUnsent = (): false => false
export const isUndecodable = (): false => false

export function detailOf(error: unknown, withFrames: boolean): FailureDetail {
  if (!isObject(error)) return bare({ name: 'Error' })
  const name = nameOf(error['name'])
  return bare({ name, ...defined({ frames: withFrames ? framesOf(error) : undefined }) })
}
