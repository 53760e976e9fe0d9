import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface AnswerProxyOptions {
  /** The port to listen on. Default: any free port. */
  readonly port?: number
  /** Sees what the client sends. */
  readonly ask?: (data: Buffer) => void
  /** May change what the server responds. */
  readonly answer?: (data: Buffer) => Buffer
}

/**
 * A proxy between client and server. It can cut the connection after the server has responded and
 * before the client receives the response.
 */
export class AnswerProxy {
  lost = 0
  readonly #server = createServer()
  readonly #sockets = new Set<Socket>()
  #cutting = false
  #answers = 0
  #loseEvery = Number.POSITIVE_INFINITY

  static async start(target: number, options: AnswerProxyOptions = {}): Promise<AnswerProxy> {
    const proxy = new AnswerProxy()
    proxy.#server.on('connection', (near) => proxy.#join(near, connect(target, '127.0.0.1'), options))
    proxy.#server.listen(options.port ?? 0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    return proxy
  }

  get port(): number {
    const address = this.#server.address()
    return typeof address === 'object' && address !== null ? address.port : 0
  }

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

  #join(near: Socket, far: Socket, { ask, answer }: AnswerProxyOptions): void {
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
    near.on('data', (data: Buffer) => {
      ask?.(data)
      far.write(data)
    })
    far.on('data', (data: Buffer) => {
      this.#answers++
      if (!this.#cutting && this.#answers < this.#loseEvery) {
        near.write(answer?.(data) ?? data)
        return
      }
      this.#cutting = false
      this.#answers = 0
      this.lost++
      near.destroy()
    })
  }
}
