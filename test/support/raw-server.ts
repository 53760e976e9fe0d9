import { createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { listening, parseRequest, type RawRequest } from './raw-http.ts'

export interface RawServer {
  readonly url: string
  readonly port: number
  readonly requests: RawRequest[]
  readonly connections: () => number
  /** Resolves with the next connection that ends. */
  readonly closed: () => Promise<void>
}

/** Handles a request. `count` is its number on the server, from 1. */
export type Serve = (socket: Socket, request: RawRequest, count: number) => void

/** Listens on any free port until the test ends, and passes on every complete request. */
export async function rawServer(serve: Serve, onConnection?: (socket: Socket) => void): Promise<RawServer> {
  const requests: RawRequest[] = []
  const sockets = new Set<Socket>()
  let connections = 0
  let onClosed: (() => void)[] = []
  const server = createServer((socket) => {
    const connection = ++connections
    sockets.add(socket)
    socket.on('close', () => {
      sockets.delete(socket)
      for (const tell of onClosed) tell()
      onClosed = []
    })
    // Ignore connection resets, which are expected.
    socket.on('error', () => {})
    onConnection?.(socket)
    let received = Buffer.alloc(0)
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      for (let found = parseRequest(received); found !== undefined; found = parseRequest(received)) {
        received = received.subarray(found.length)
        const request = { connection, ...found.request }
        requests.push(request)
        serve(socket, request, requests.length)
      }
    })
  })
  const port = await listening(server)
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    requests,
    connections: () => connections,
    closed: () => new Promise((resolve) => onClosed.push(resolve)),
  }
}
