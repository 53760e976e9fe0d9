/** What the client remembers of an error of a transport. */

/** Does not contain the error's message, which may contain a secret. */
export interface FailureDetail {
  readonly name: string
  readonly code?: string
  readonly syscall?: string
  /** Stack frames, which help to find a bug in the caller's own fetch. */
  readonly frames?: string
}

/** Omits the message, and every frame whose address may contain a password or a query. */
export function framesOf({ stack, message }: Readonly<Record<string, unknown>>): string | undefined {
  if (typeof stack !== 'string' || typeof message !== 'string' || !stack.includes(message)) return undefined
  const lines = stack.slice(stack.indexOf(message) + message.length).split('\n')
  const places = lines.filter((line) => /^ +at .*:\d+:\d+\)?$/.test(line) && !/\?|\/\/[^/]*@/.test(line))
  return places.length === 0 ? undefined : places.join('\n')
}

/** Any string that is not shaped like a name or a code may contain a secret. */
export function isWord(value: unknown, shape: RegExp): value is string {
  return typeof value === 'string' && shape.test(value)
}

export function nameOf(name: unknown): string {
  return isWord(name, /^[A-Za-z]{1,64}$/) ? name : 'Error'
}
