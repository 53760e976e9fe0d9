import { once } from 'node:events'
import { createServer } from 'node:net'

/** A port on which no server listens now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = Object(server.address())
  await once(server.close(), 'close')
  return port
}
