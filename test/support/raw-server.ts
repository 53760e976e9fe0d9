import { createServer, type Server, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** Handles a request. `count` is its number on the server, from 1. */
export type Serve = (socket: Socket, request: RawRequest, count: number) => void

/** Listens on any free port until the test ends, and passes on every complete request. */
export async function rawServer(serve: Serve, onConnection?: (socket: Socket) => void) {
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
    /** Resolves with the next connection that ends. */
    closed: () => new Promise<void>((resolve) => onClosed.push(resolve)),
  }
}

export interface RawRequest {
  /** Number of its connection, from 1. */
  readonly connection: number
  /** First line, for example `POST /v1/orders HTTP/1.1`. */
  readonly line: string
  /** Header lines in the order received, names in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string
}

/** Listens on any free port by default, and returns the port. */
export function listening(server: Server, port = 0): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      const address = server.address()
      if (address === null || typeof address === 'string') reject(new Error('no port'))
      else resolve(address.port)
    })
  })
}

/** The first complete request in the bytes, and its length. Undefined if incomplete. */
export function parseRequest(
  bytes: Buffer,
): { readonly request: Omit<RawRequest, 'connection'>; readonly length: number } | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const [line = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n')
  const headers = lines.map((text): [string, string] => {
    const colon = text.indexOf(':')
    return [text.slice(0, colon).toLowerCase(), text.slice(colon + 1).trim()]
  })
  const size = Number(headers.find(([name]) => name === 'content-length')?.[1] ?? 0)
  const length = end + 4 + size
  if (bytes.length < length) return undefined
  return { request: { line, headers, body: bytes.subarray(end + 4, length).toString('utf8') }, length }
}

export const responding = (bytes: string | Uint8Array) => rawServer((socket) => socket.write(bytes))

/** A complete response with its length. */
export function answerText(status: number, body: string, headers: readonly string[] = []): string {
  const lines = [`HTTP/1.1 ${status} Some Reason`, 'content-type: application/json', ...headers]
  return `${lines.join('\r\n')}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}
