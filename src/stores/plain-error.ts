/** Returns a copy of an error with only its name and a code: the message may contain secrets. */
export function plainError(error: unknown, code: string): Error & { readonly code: string } {
  const copy = Object.assign(new Error(code), { code })
  copy.name = error instanceof Error ? error.name : 'Error'
  return copy
}
