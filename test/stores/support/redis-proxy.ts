import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

/** Stands between a client and a server, and can cut the line when the server has answered but nobody heard it yet. */
export class RedisProxy {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #cutting = false

  private constructor(server: Server) {
    this.#server = server
  }

  static async start(port: number): Promise<RedisProxy> {
    const server = createServer()
    const proxy = new RedisProxy(server)
    server.on('connection', (near) => proxy.#join(near, connect(port, '127.0.0.1')))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return proxy
  }

  get port(): number {
    const address = this.#server.address()
    return typeof address === 'object' && address !== null ? address.port : 0
  }

  /** Loses the next answer, and the connection with it. */
  loseNextAnswer(): void {
    this.#cutting = true
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #join(near: Socket, far: Socket): void {
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        this.#sockets.delete(socket)
        other.destroy()
      })
    }
    near.on('data', (data) => far.write(data))
    far.on('data', (data) => {
      if (!this.#cutting) {
        near.write(data)
        return
      }
      this.#cutting = false
      near.destroy()
    })
  }
}
