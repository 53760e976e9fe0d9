import { StoreError } from '../../errors/classes.ts'

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

type FileSystem = NodeModules['node:fs']

/**
 * Throws if the file has a second name, or is mounted without its directory. SQLite names the log
 * after the path and puts it beside the file. A process that opens the file by another name, or
 * from another container, would not find the log, and would lose the commits in it.
 */
export function checkPlace(path: string, name: string): void {
  const problem = problemOf(path)
  if (problem !== undefined) throw new StoreError(`Cannot open the order store in ${name}: ${problem}`)
}

function problemOf(path: string): string | undefined {
  const fs = nodeModule('node:fs')
  try {
    const found = fs?.statSync(path)
    if (fs === undefined || !found?.isFile()) return undefined
    if (found.nlink > 1)
      return (
        `the file has ${found.nlink} hard links. SQLite keeps a separate log for each name, so orders ` +
        'could be forgotten. Nothing was written. ' +
        'Keep the name that was used so far, and delete the other links.'
      )
    if (globalThis.process.platform !== 'win32' && isMountPoint(fs, fs.realpathSync(path)))
      return (
        'the file is mounted without its directory, so the latest orders could be lost with the ' +
        'container. Nothing was written. Mount the directory instead of the file.'
      )
  } catch {
    // This user or runtime may not read the file's properties. SQLite reports a file that it cannot
    // open.
  }
  return undefined
}

function isMountPoint(fs: FileSystem, file: string): boolean {
  let mounts: string
  try {
    mounts = fs.readFileSync('/proc/self/mountinfo', 'utf8')
  } catch {
    // Only Linux has this list, and Deno may deny it. Do not compare devices instead: in some overlay
    // file systems, every file has another device than its directory.
    return false
  }
  return mounts.split('\n').some((mount) => {
    const point = mount.split(' ')[4] ?? ''
    return file === point.replace(/\\(\d{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)))
  })
}

/**
 * Detects deleted or replaced files of a connection, by device and inode. SQLite would continue to
 * use a deleted file, and acknowledge writes that are lost when the process ends.
 */
export class DatabaseFiles {
  /** Undefined on Windows: SQLite's open files cannot be deleted or renamed there. */
  readonly #fs: FileSystem | undefined
  readonly #path: string
  readonly #files: readonly string[]
  readonly #identities: Map<string, string> = new Map()

  /**
   * @param path the path that the caller passed: its symbolic links may lead to another file later
   * @param target the file that the connection has open, with links resolved
   */
  constructor(path: string, target: string) {
    this.#path = path
    // Without the log, the last commits are lost. Without the shared memory, other processes do not
    // see the locks of this process.
    this.#files = [path, `${target}-wal`, `${target}-shm`]
    this.#fs = globalThis.process?.platform === 'win32' ? undefined : nodeModule('node:fs')
    this.check('open')
  }

  check(task: 'open' | 'read from' | 'write to' | 'confirm a write to'): void {
    for (const file of this.#files) {
      const known = this.#identities.get(file)
      const found = this.#identityOf(file)
      if (known !== undefined && found !== known) {
        throw new StoreError(
          `Cannot ${task} the order store in ${this.#path}: ${file} was deleted or replaced ` +
            `while the store was open. ${task === 'write to' ? 'Nothing was written. ' : ''}` +
            'Put the file back, or close the store and open a new one. ' +
            'Orders that are not in the current file are forgotten.',
          task === 'write to' ? { applied: false } : {},
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
