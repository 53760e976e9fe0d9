import { createInterface } from 'node:readline'
import { LIKE_A_KEY, redact } from '../http/redact.ts'

export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Base of relative paths, and the folder whose packages provide the store's driver. */
  readonly folder: string
  readonly interactive: boolean
  out(text: string): void
  err(text: string): void
  ask(question: string): Promise<string>
}

/** Without a reply (Ctrl-C, Ctrl-D, the end of the input), the result is empty, which means no. */
export function askBy(
  input: NodeJS.ReadableStream,
  output: NodeJS.WritableStream,
): (question: string) => Promise<string> {
  return (question) =>
    new Promise((resolve) => {
      const lines = createInterface({ input, output })
      lines.once('close', () => {
        output.write('\n')
        resolve('')
      })
      lines.question(question, (reply) => {
        resolve(reply)
        lines.removeAllListeners('close').close()
      })
    })
}

export const EXIT = { done: 0, failed: 1, wrongUse: 2, needsAttention: 3, notConfirmed: 4 } as const
export type Exit = (typeof EXIT)[keyof typeof EXIT]

export class UsageError extends Error {}

/** Does not hide short secrets, because ordinary words may contain them. */
export function hide(text: string, secrets: Iterable<string>): string {
  return redact(text, secrets, LIKE_A_KEY / 4)
}

/** Replaces control characters, with which stored strings could move the terminal's cursor. */
export function plain(text: string): string {
  return text.replace(/\p{Cc}/gu, '?')
}

export function time(milliseconds: number | undefined): string {
  return milliseconds === undefined || milliseconds === 0 ? '' : new Date(milliseconds).toISOString()
}

export type Row = Readonly<Record<string, string | number | boolean | undefined>>

/** Returns the number of items. */
export async function print<T>(
  terminal: Terminal,
  json: boolean,
  items: AsyncIterable<T>,
  rowOf: (item: T) => Row,
  each: (item: T) => void = () => {},
): Promise<number> {
  const rows: Row[] = []
  let count = 0
  const counts = terminal.interactive && !json
  for await (const item of items) {
    count++
    each(item)
    if (json) terminal.out(`${JSON.stringify(item)}\n`)
    else rows.push(rowOf(item))
    if (counts) terminal.err(`\r${count} `)
  }
  if (counts) terminal.err('\r')
  if (!json) terminal.out(count === 0 ? 'none\n' : table(rows))
  return count
}

function table(rows: readonly Row[]): string {
  const names = Object.keys(rows[0] ?? {})
  const lines = [names, ...rows.map((row) => names.map((name) => plain(String(row[name] ?? ''))))]
  const widths = names.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  const padded = lines.map((line) => line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '))
  return padded.map((line) => `${line.trimEnd()}\n`).join('')
}
