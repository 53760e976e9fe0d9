/**
 * The logs of LevelDB, in which Chromium keeps IndexedDB. LevelDB writes a record in two steps,
 * header and content, and a kill may fall between them. When LevelDB opens the log, it ignores the
 * incomplete record, but appends the next record behind it. When it opens the log once more, both
 * are unreadable, and Chromium deletes all databases of the origin:
 * https://github.com/google/leveldb/issues/1287
 */
import { appendFileSync, existsSync, readdirSync, readFileSync, truncateSync } from 'node:fs'
import { join } from 'node:path'

const BLOCK = 32_768
/** Four bytes of checksum, two of length, one of type. */
const HEADER = 7
/** Types of a whole record and of the last part of one. Longer records continue in the next block. */
const LAST_PARTS: ReadonlySet<number | undefined> = new Set([1, 4])

function logsIn(profile: string): string[] {
  const origins = join(profile, 'Default', 'IndexedDB')
  if (!existsSync(origins)) return []
  return readdirSync(origins, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.leveldb[\\/](?:\d+\.log|MANIFEST-\d+)$/.test(path))
    .map((path) => join(origins, path))
}

/** The size of a log without an incomplete record at its end. */
export function completeSize(log: Buffer): number {
  let complete = 0
  for (let at = 0; at + HEADER <= log.length; ) {
    const left = BLOCK - (at % BLOCK)
    if (left < HEADER) {
      at += left
      continue
    }
    const type = log[at + HEADER - 1]
    at += HEADER + log.readUInt16LE(at + 4)
    if (at <= log.length && LAST_PARTS.has(type)) complete = at
  }
  return complete
}

/**
 * Removes incomplete records, which the browser has not acknowledged, from the ends of all logs.
 * The browser must not run. Returns the number of such logs.
 */
export function cutIncompleteRecords(profile: string): number {
  let cut = 0
  for (const path of logsIn(profile)) {
    const log = readFileSync(path)
    const size = completeSize(log)
    if (size === log.length) continue
    truncateSync(path, size)
    cut++
  }
  return cut
}

/** Leaves the logs as a kill between header and content does. The browser must not run. */
export function tearLogs(profile: string): void {
  const header = Buffer.from([0x12, 0x34, 0x56, 0x78, 0x58, 0x02, 0x01])
  for (const path of logsIn(profile)) if (path.endsWith('.log')) appendFileSync(path, header)
}
