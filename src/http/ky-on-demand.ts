/** Replaces ky in the build for Node: evaluates it when the first request needs it. */
import type { KyInstance } from 'ky'

export default function ky(...parameters: Parameters<KyInstance>): ReturnType<KyInstance> {
  const module: typeof import('ky') = require('ky')
  return module.default(...parameters)
}
