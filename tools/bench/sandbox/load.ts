import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** A server under load. */
export interface Target {
  readonly port: number
  readonly apiKey: string
}

/** The body of the n-th order, the same for every measured server. */
export function orderBody(n: number): string {
  const metadata = { externalOrderId: `shop-${n}`, sourceSystem: 'bench' }
  return JSON.stringify({ serviceId: 'svc_standard', target: '@ada', quantity: 1, metadata })
}

/**
 * Sends orders for the given time over the given number of connections, one at a time on each.
 * Returns the responses per second. Writes HTTP directly, because a complete client needs more time
 * for a request than the servers.
 */
export async function loadFor(
  { port, apiKey }: Target,
  milliseconds: number,
  connections: number,
  nextOrder: () => number,
): Promise<number> {
  const sockets = Array.from({ length: connections }, () =>
    connect({ port, host: '127.0.0.1', noDelay: true }),
  )
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  const begin = performance.now()
  const end = begin + milliseconds
  const answered = await Promise.all(sockets.map((socket) => orders(socket, apiKey, end, nextOrder)))
  const seconds = (performance.now() - begin) / 1000
  return answered.reduce((sum, count) => sum + count, 0) / seconds
}

function orders(socket: Socket, apiKey: string, end: number, nextOrder: () => number): Promise<number> {
  return new Promise((resolve, reject) => {
    let answered = 0
    let received = ''
    const send = (): void => {
      const n = nextOrder()
      const body = orderBody(n)
      socket.write(
        `POST /v1/orders HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${apiKey}\r\n` +
          `content-type: application/json\r\nidempotency-key: bench-${n}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      )
    }
    socket.setEncoding('latin1')
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('the server closed a connection')))
    socket.on('data', (chunk: string) => {
      received += chunk
      const head = received.indexOf('\r\n\r\n')
      if (head < 0) return
      const length = /\r\ncontent-length: (\d+)/i.exec(received)?.[1]
      if (!received.startsWith('HTTP/1.1 201 ') || length === undefined)
        return socket.destroy(new Error(`not an order: ${received}`))
      if (received.length < head + 4 + Number(length)) return
      received = ''
      answered++
      if (performance.now() < end) return send()
      socket.removeAllListeners('close').destroy()
      resolve(answered)
    })
    send()
  })
}
