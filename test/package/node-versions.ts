import { join } from 'node:path'

const OTHERS = ['22.13', '22', '26']

/**
 * The version that runs the tests, and other versions, which npm provides as packages for Linux.
 */
export function nodeVersions(): readonly string[] {
  return process.platform === 'linux' ? [process.versions.node, ...OTHERS] : [process.versions.node]
}

/** Path of the program. `versions` is the installed folder test/package/versions. */
export function nodeBinary(version: string, versions: string): string {
  return version === process.versions.node
    ? process.execPath
    : join(versions, `node_modules/${process.platform}-${process.arch}-${version}/bin/node`)
}
