import { run } from '../../src/command/run.ts'
import type { Terminal } from '../../src/command/terminal.ts'

export interface Given {
  readonly env?: Readonly<Record<string, string>>
  readonly folder?: string
  /** The person's input. If undefined, nobody can be asked. */
  readonly reply?: string
  readonly stop?: AbortSignal
  /** Called for each printed row. */
  readonly onOut?: (text: string) => void
}

export interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
  readonly asked: string
}

/** Runs the command in this process, over a terminal without colours. */
export async function runHere(argv: readonly string[], given: Given): Promise<Ran> {
  const output = { out: '', err: '', asked: '' }
  const terminal: Terminal = {
    env: given.env ?? {},
    folder: given.folder ?? '.',
    interactive: given.reply !== undefined,
    stop: given.stop ?? new AbortController().signal,
    out: (text) => {
      output.out += text
      given.onOut?.(text)
    },
    err: (text) => {
      output.err += text
    },
    progress: () => {},
    paint: (_style, text) => text,
    ask: async (question) => {
      output.asked += question
      return given.reply ?? ''
    },
  }
  const code = await run(argv, terminal)
  return { code, ...output }
}
