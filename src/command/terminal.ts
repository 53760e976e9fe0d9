/** What the command needs of a terminal, and how rows and messages are printed on it. */
import { createInterface } from 'node:readline'
import { styleText } from 'node:util'
import { LIKE_A_KEY, REDACTED, redact } from '../http/redact.ts'

export type Style = 'bold' | 'green' | 'yellow' | 'red'

export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Base of relative paths, and the folder whose packages provide the store's driver. */
  readonly folder: string
  readonly interactive: boolean
  /** Ends the command early. Its reason is an {@link Interrupted}. */
  readonly stop: AbortSignal
  out(text: string): void
  err(text: string): void
  /** Shows progress until the next output, if rows are not visible and a person is watching. */
  progress(text: string): void
  paint(style: Style, text: string): string
  ask(question: string): Promise<string>
}

export const EXIT = {
  done: 0,
  failed: 1,
  wrongUse: 2,
  needsAttention: 3,
  notConfirmed: 4,
  interrupted: 130,
  outputClosed: 141,
  terminated: 143,
} as const
export type Exit = (typeof EXIT)[keyof typeof EXIT]

export class UsageError extends Error {}

/** A failure whose message is written for people. */
export class Failure extends Error {}

export class Interrupted extends Error {
  readonly exit: Exit

  constructor(exit: Exit) {
    super('interrupted')
    this.exit = exit
  }
}

/** Milliseconds for which an interrupted command may still store what it knows. */
const LAST_TASKS = 15_000

export function terminalOf(process: NodeJS.Process): Terminal {
  const { stdin, stdout, stderr } = process
  const stop = new AbortController()
  // A second Ctrl-C ends the process immediately, because the listener is gone.
  const stopOn = (signal: NodeJS.Signals, exit: Exit): void => {
    process.once(signal, () => {
      stop.abort(new Interrupted(exit))
      // A database that accepts a connection and is then silent would keep the process forever.
      setTimeout(() => process.exit(exit), LAST_TASKS).unref()
    })
  }
  stopOn('SIGINT', EXIT.interrupted)
  stopOn('SIGTERM', EXIT.terminated)
  // The reader of a pipe may close it, like `head`. The error may come after the command's end.
  stdout.on('error', () => {
    process.exitCode = EXIT.outputClosed
    stop.abort(new Interrupted(EXIT.outputClosed))
  })
  stderr.on('error', () => {})
  let shown = false
  const write = (stream: NodeJS.WriteStream, text: string): void => {
    if (shown) stderr.write('\r\u001b[K')
    shown = false
    stream.write(text)
  }
  return {
    env: process.env,
    folder: process.cwd(),
    interactive: stdin.isTTY && stderr.isTTY,
    stop: stop.signal,
    out: (text) => {
      if (!stdout.destroyed) write(stdout, text)
    },
    err: (text) => write(stderr, text),
    progress: (text) => {
      if (!stderr.isTTY || stdout.isTTY) return
      write(stderr, text)
      shown = true
    },
    // Honours NO_COLOR and FORCE_COLOR.
    paint: (style, text) => styleText(style, text, { stream: stdout }),
    ask: askBy(stdin, stderr),
  }
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

/** Does not hide short secrets by themselves, because ordinary words may contain them. */
export function hide(text: string, secrets: readonly string[]): string {
  const shortest = LIKE_A_KEY / 4
  // redact() is for API keys, which are ASCII. The password of a store may have other characters.
  const isPlain = (secret: string): boolean => /^[ -~]*$/.test(secret)
  let hidden = text
  for (const secret of secrets)
    if (!isPlain(secret) && secret.length >= shortest) hidden = hidden.replaceAll(secret, REDACTED)
  return redact(hidden, secrets.filter(isPlain), shortest).replace(/([a-z][a-z\d+.-]*:\/\/)[^\s"]*@/gi, '$1')
}

/**
 * Escapes what nobody sees (controls, formats, invisible spaces) as in JSON: it could move the
 * cursor, reverse the line, or make two references look alike.
 */
export function visible(text: string): string {
  return text.replace(/(?! )[\p{C}\p{Z}\p{DI}]/gu, (unseen) =>
    unseen
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  )
}
