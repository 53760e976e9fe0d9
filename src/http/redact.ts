const HIDDEN = '[redacted]'

/**
 * Takes API keys out of a text of the server, also percent-encoded or in base64: services do echo a key in "invalid
 * key" messages, and such a text ends up in errors.
 */
export function redact(text: string, secrets: Iterable<string>): string {
  let clean = text
  for (const secret of secrets) {
    if (secret === '') continue
    for (const form of [secret, encodeURIComponent(secret), base64(secret)])
      clean = clean.replaceAll(form, HIDDEN)
  }
  return clean
}

function base64(text: string): string {
  // Padding is left out: the key may stand in the middle of a longer encoded text's end.
  return btoa(text).replace(/=+$/, '')
}
