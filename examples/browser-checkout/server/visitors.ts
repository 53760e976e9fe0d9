/**
 * Who may use the proxy. REPLACE THIS: look up the visitor's session, and return the API key of the wallet that is theirs.
 *
 * Anyone who gets a key here can read that wallet's balance and all its orders, and can spend it. If each of your visitors has a
 * wallet, return each one's key, and give the page's client each one's `account`; if all share yours, the page must not order
 * at all: take the cart on your server and call the SDK there, as `checkout-backend` does.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

/** Until then: one password for one wallet. The browser asks for it, and sends it with each request; the user name is free. */
export function whoKnows(password: string, apiKey: string): (request: IncomingMessage) => string | undefined {
  const expected = digest(password)
  return ({ headers }) => {
    const [, encoded = ''] = /^Basic (\S+)$/i.exec(headers.authorization ?? '') ?? []
    const [, given = ''] = /^[^:]*:(.*)$/s.exec(Buffer.from(encoded, 'base64').toString()) ?? []
    return timingSafeEqual(digest(given), expected) ? apiKey : undefined
  }
}

/** What has a browser ask for it. */
export const ASK = { 'www-authenticate': 'Basic realm="Harbour", charset="UTF-8"' }

/** Texts of one length, so that comparing them takes one time. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/**
 * For development: the person at this machine. Never behind another server, which makes every visitor look like that.
 */
export function isThisMachine({ socket, headers }: IncomingMessage): boolean {
  const host = URL.parse(`http://${headers.host}`)?.hostname ?? ''
  return (
    /^(?:::ffff:)?127\.|^::1$/.test(socket.remoteAddress ?? '') &&
    // Another name means a foreign page whose name was pointed here.
    ['localhost', '127.0.0.1', '[::1]'].includes(host)
  )
}
