/** A copy of an error that contains nothing but its name and a code. */
export function plainError(error: unknown, code: string): Error & { readonly code: string } {
  const copy = Object.assign(new Error(code), { code })
  copy.name = error instanceof Error ? error.name : 'Error'
  return copy
}
