/** Packages that are not installed with the project. */
import { createRequire } from 'node:module'

export const enginesFolder: URL = new URL('../engines/', import.meta.url)
const requireEngine = createRequire(new URL('package.json', enginesFolder))

/** A module of that folder, typed by the one who asks. */
export function engine<T>(name: string): T {
  return requireEngine(name) as T
}

/** Where such a module is, for what only imports it. */
export const enginePath = (name: string): string => requireEngine.resolve(name)
