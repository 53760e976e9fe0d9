/** The Node modules that the store loads when it opens a file. */
interface NodeModules {
  'node:fs': typeof import('node:fs')
  'node:path': typeof import('node:path')
  'node:sqlite': typeof import('node:sqlite')
}

/**
 * A module of Node, or undefined if Node has none of that name. Not an import, so that loading this
 * file costs nothing and fails nowhere. Only this way of loading on demand works within a
 * constructor.
 */
export function nodeModule<Name extends keyof NodeModules>(name: Name): NodeModules[Name] | undefined {
  try {
    return globalThis.process?.getBuiltinModule?.(name)
  } catch {
    // ERR_UNKNOWN_BUILTIN_MODULE. The caller reports what is missing and what to do about it.
    return undefined
  }
}
