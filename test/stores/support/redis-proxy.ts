import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

/**
 * A proxy between client and server. It can cut the connection after the server has responded and
 * before the client receives the response.
 */
export class RedisProxy {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #cutting = false
  #answers = 0
  #loseEvery = Number.POSITIVE_INFINITY
  /** Number of responses lost so far. */
  lost = 0

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

  /** Loses the next response and its connection. */
  loseNextAnswer(): void {
    this.#cutting = true
  }

  /**
   * Loses every `count`th response from now on, with its connection. Counts instead of using time,
   * so that fast machines lose as many.
   */
  loseEvery(count: number): void {
    this.#answers = 0
    this.#loseEvery = count
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
      this.#answers++
      if (!this.#cutting && this.#answers < this.#loseEvery) {
        near.write(data)
        return
      }
      this.#cutting = false
      this.#answers = 0
      this.lost++
      near.destroy()
    })
  }
}
