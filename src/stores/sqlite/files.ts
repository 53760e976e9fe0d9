import { StoreError } from '../../errors.ts'
import { nodeModule } from './node-module.ts'

type FileSystem = typeof import('node:fs')

/**
 * Detects deleted or replaced files of a connection, by device and inode. SQLite would continue to
 * write to a deleted file, and acknowledge writes that are lost when the process ends.
 */
export class DatabaseFiles {
  /** Undefined on Windows: SQLite's open files cannot be deleted or renamed there. */
  readonly #fs: FileSystem | undefined
  readonly #path: string
  readonly #target: string
  readonly #identities: Map<string, string> = new Map()

  /**
   * @param path the path that the caller passed: its symbolic links may lead to another file later
   * @param target the file that the connection has open, with links resolved
   */
  constructor(path: string, target: string) {
    this.#path = path
    this.#target = target
    this.#fs = globalThis.process?.platform === 'win32' ? undefined : nodeModule('node:fs')
  }

  check(journalMode: string, name: string): void {
    const files = [this.#path]
    // Without the log, the last commits are lost. Without the shared memory, other processes do not
    // see the locks of this process.
    if (journalMode === 'wal') files.push(`${this.#target}-wal`, `${this.#target}-shm`)
    for (const file of files) {
      const known = this.#identities.get(file)
      const found = this.#identityOf(file)
      if (known !== undefined && found !== known) {
        throw new StoreError(
          `Cannot write to the order store in ${name}: ${file} was deleted or replaced ` +
            'while the store was open. Nothing was written. ' +
            'Put the file back, or close the store and open a new one. ' +
            'Orders that are not in the current file are forgotten.',
        )
      }
      if (found !== undefined) this.#identities.set(file, found)
    }
  }

  #identityOf(file: string): string | undefined {
    const found = this.#fs?.statSync(file, { bigint: true, throwIfNoEntry: false })
    return found && `${found.dev}:${found.ino}`
  }
}
