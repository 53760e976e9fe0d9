/** The default label of a service, made from its base URL. */

/**
 * Equivalent URLs have the same label (RFC 3986 6.2.2). Leaves out user name, password, query and
 * fragment, because the label is stored.
 */
export function normalizeServer(baseUrl: string): string {
  const url = parseUrl(baseUrl)
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:') {
    throw new TypeError('baseUrl is not an absolute http or https address')
  }
  const host = url.hostname.replace(/\.$/, '')
  const path = url.pathname.replace(/%[0-9a-f]{2}/gi, normalizedEscape).replace(/\/+$/, '')
  return `${url.protocol}//${host}${url.port === '' ? '' : `:${url.port}`}${path}`
}

function parseUrl(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    // The runtime's own error quotes the URL, which may contain a password.
    return undefined
  }
}

/** Decodes characters that never need an escape (RFC 3986 2.3). */
function normalizedEscape(escaped: string): string {
  const character = String.fromCharCode(Number.parseInt(escaped.slice(1), 16))
  return /[\w.~-]/.test(character) ? character : escaped.toUpperCase()
}
