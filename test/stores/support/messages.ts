import type { ChildProcess } from 'node:child_process'

/** The next message of a child process. Rejects if the process ends first. */
export function nextMessage(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const onMessage = (message: unknown): void => {
      child.off('exit', onExit)
      resolve(message)
    }
    const onExit = (code: number | null, signal: string | null): void => {
      child.off('message', onMessage)
      reject(new Error(`the process ended with ${signal ?? code} before it answered`))
    }
    child.once('message', onMessage)
    child.once('exit', onExit)
  })
}
