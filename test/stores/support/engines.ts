/** Packages that are installed separately from the project. */
import { createRequire } from 'node:module'

export const enginesFolder: URL = new URL('../../engines/', import.meta.url)
const requireEngine = createRequire(new URL('package.json', enginesFolder))

/** Imports a module of that folder, with the caller's type. */
export function engine<T>(name: string): T {
  return requireEngine(name) as T
}
