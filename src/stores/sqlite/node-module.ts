interface NodeModules {
  'node:fs': typeof import('node:fs')
  'node:path': typeof import('node:path')
  'node:sqlite': typeof import('node:sqlite')
}

/** A static import fails on other runtimes, and a constructor cannot wait for a dynamic one. */
export function nodeModule<Name extends keyof NodeModules>(name: Name): NodeModules[Name] | undefined {
  try {
    return globalThis.process?.getBuiltinModule?.(name)
  } catch {
    // ERR_UNKNOWN_BUILTIN_MODULE: the caller reports the missing module.
    return undefined
  }
}
