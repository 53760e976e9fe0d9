/**
 * Who may use the proxy. REPLACE THIS: look up the visitor's session, and return the API key of the
 * visitor's wallet.
 *
 * Anyone who gets a key here can read that wallet's balance and all its orders, and can spend it.
 * If each visitor has a wallet, return the key of that wallet, and set the visitor's `account` in
 * the page's client. If all visitors share your wallet, the page must not order at all. Then accept
 * the cart on your server and call the SDK there, as `checkout-backend` does.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

/**
 * Until then, one password opens one wallet. The browser asks for it and sends it with each
 * request. Any user name works.
 */
export function whoKnows(password: string, apiKey: string): (request: IncomingMessage) => string | undefined {
  const expected = digest(password)
  return ({ headers }) => {
    const [, encoded = ''] = /^Basic (\S+)$/i.exec(headers.authorization ?? '') ?? []
    const [, given = ''] = /^[^:]*:(.*)$/s.exec(Buffer.from(encoded, 'base64').toString()) ?? []
    return timingSafeEqual(digest(given), expected) ? apiKey : undefined
  }
}

/** The header that makes a browser ask for the password. */
export const ASK = { 'www-authenticate': 'Basic realm="Harbour", charset="UTF-8"' }

/** Hashes have equal lengths, so that every comparison takes the same time. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/**
 * For development: accepts only the person at this machine. Never use it behind another server,
 * which makes every visitor look local.
 */
export function isThisMachine({ socket, headers }: IncomingMessage): boolean {
  const host = URL.parse(`http://${headers.host}`)?.hostname ?? ''
  return (
    /^(?:::ffff:)?127\.|^::1$/.test(socket.remoteAddress ?? '') &&
    // Any other host is a foreign page whose DNS name points to this machine.
    ['localhost', '127.0.0.1', '[::1]'].includes(host)
  )
}
