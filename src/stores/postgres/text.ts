/** PostgreSQL's strings cannot contain NUL, which is stored as ESC and 1. So ESC becomes ESC and 0. */
export function toStored(text: string): string {
  return text.replaceAll('\u001b', '\u001b0').replaceAll('\u0000', '\u001b1')
}

export function fromStored(stored: string): string {
  return stored.replaceAll('\u001b1', '\u0000').replaceAll('\u001b0', '\u001b')
}
