/**
 * Who may use the proxy. REPLACE THIS: look up the visitor's session, and return the API key of the wallet that is theirs.
 *
 * Whoever gets a key here can read that wallet's balance and all its orders, and can spend it. If each of your visitors has a
 * wallet, return each one's key, and give the page's client each one's `account`; if all share yours, the page must not order
 * at all: take the cart on your server and call the SDK there, as `checkout-backend` does.
 */
import type { IncomingMessage } from 'node:http'

/** Until then: nobody but the person at this machine. */
export function isThisMachine(request: IncomingMessage): boolean {
  const { socket, headers } = request
  const host = URL.parse(`http://${headers.host}`)?.hostname ?? ''
  return (
    /^(?:::ffff:)?127\.|^::1$/.test(socket.remoteAddress ?? '') &&
    // Another name means a server in front of this one, or a foreign page whose name was pointed here.
    ['localhost', '127.0.0.1', '[::1]'].includes(host)
  )
}
