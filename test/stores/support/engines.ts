/** Packages that are installed separately from the project. */
import { createRequire } from 'node:module'

export const enginesFolder: URL = new URL('../../engines/', import.meta.url)
const requireEngine = createRequire(new URL('package.json', enginesFolder))

/** Imports a module of that folder, with the caller's type. */
export function engine<T>(name: string): T {
  return requireEngine(name) as T
}

/** The path of such a module, for programs that import it. */
export const enginePath = (name: string): string => requireEngine.resolve(name)
