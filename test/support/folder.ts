import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

/** A new folder until the tests of the file have run, or until what `removeAfter` waits for. */
export function temporaryFolder(name: string, removeAfter: (remove: () => void) => void = afterAll): string {
  const folder = mkdtempSync(join(tmpdir(), `${name}-`))
  removeAfter(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
