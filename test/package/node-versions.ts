import { join } from 'node:path'
import { root } from '../../tools/build/ensure-built.ts'

/** The folder of what only tests need: other versions of Node, runtimes, bundlers, test runners. */
export const engines: string = join(root, 'test/engines')

const OTHERS = ['22.13', '22', '26']

/** The version that runs the tests, and other versions, which npm provides as packages for Linux. */
export function nodeVersions(): readonly string[] {
  return process.platform === 'linux' ? [process.versions.node, ...OTHERS] : [process.versions.node]
}

export function nodeBinary(version: string): string {
  return version === process.versions.node
    ? process.execPath
    : join(engines, `node_modules/${process.platform}-${process.arch}-${version}/bin/node`)
}
