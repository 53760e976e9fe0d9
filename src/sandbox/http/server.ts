import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { type ControlServer, createControlServer, MAX_CONTROL_BYTES } from '../control/control-server.ts'
import type { Sandbox } from '../sandbox.ts'
import { MAX_BODY_BYTES } from '../service/handler.ts'
import type { SandboxMessage, SandboxReply, SandboxRequest } from '../service/reply.ts'
import { anything, assertShape, code, number, record, type Shape } from '../service/shape.ts'

/** Options of {@link serveSandbox}. */
export interface ServeSandboxOptions {
  /** Port to listen on. Default 0: any free port. */
  readonly port?: number
  /**
   * Address to listen on.
   *
   * Default `127.0.0.1`. The sandbox has no access control: do not expose it to an untrusted
   * network.
   */
  readonly host?: string
  /** Responds to CORS preflights and lets pages from any origin read responses. Default false. */
  readonly cors?: boolean
  /**
   * Serves the live page at `/` and the control API below `/__sandbox/`.
   *
   * `'loopback'` serves them only if `host` is a loopback address. Default false.
   */
  readonly control?: boolean | 'loopback'
  /** Called after each response, even if a fault dropped the response or held it back. */
  readonly onRequest?: (request: SandboxRequest) => void
  /**
   * Called with a log line for other events: control calls other than reads, and connections closed
   * after an error.
   */
  readonly onNotice?: (notice: string) => void
}

const shapes: { readonly [Name in keyof ServeSandboxOptions]-?: Shape } = {
  // Node would listen on a Unix socket whose path is the value.
  port: number({ min: 0, max: 65_535 }),
  host: anything,
  cors: anything,
  control: anything,
  onRequest: anything,
  onNotice: anything,
}
const optionsShape = record({}, shapes)
const sandboxShape = code(
  'a sandbox that createSandbox() returned',
  (value) => typeof (value as Sandbox | null | undefined)?.handle === 'function',
)

/** A running server for a sandbox. */
export interface SandboxServer {
  /** Base URL, for example `http://127.0.0.1:4010`. */
  readonly url: string
  /** Port on which the server listens. */
  readonly port: number
  /** True if the server serves the live page and the control API. */
  readonly control: boolean
  /** Stops listening and cuts open connections. A second call waits for the first. */
  close(): Promise<void>
}

/**
 * Serves a sandbox over real sockets.
 *
 * Faults become real resets, truncated bodies and silent connections.
 *
 * @throws {TypeError} for an unknown option, an invalid port, or a missing sandbox
 * @throws {Error} if the server cannot listen, for example because the port is in use
 * @example
 * const server = await serveSandbox(createSandbox(), { port: 4010 })
 * console.log(server.url)
 * await server.close()
 */
export async function serveSandbox(
  sandbox: Sandbox,
  options: ServeSandboxOptions = {},
): Promise<SandboxServer> {
  assertShape<Sandbox>(sandbox, sandboxShape, 'serveSandbox')
  assertShape<ServeSandboxOptions>(options, optionsShape, 'options of serveSandbox')
  const { port = 0, host = '127.0.0.1', cors = false, onRequest, onNotice = () => {} } = options
  let control: ControlServer | null = null
  const server = createServer((request, response) => {
    const served =
      control?.isFor(request) === true
        ? serveControl(control, request, response)
        : serveRequest(sandbox, request, response, cors, onRequest)
    served.catch((error: unknown) => {
      request.socket.destroy()
      onNotice(`${request.method} ${request.url}: connection closed (${messageOf(error)})`)
    })
  })
  await once(server.listen(port, host), 'listening')
  // The address is a string only for a pipe, and null only if the server is not listening.
  const address = server.address() as AddressInfo
  const loopback = isLoopback(address.address)
  if (options.control === true || (options.control === 'loopback' && loopback))
    control = createControlServer(sandbox, loopback, (method, path, status) =>
      onNotice(`${method} ${path} ${status}`),
    )
  let closed: Promise<void> | undefined
  const name = address.family === 'IPv6' ? `[${address.address}]` : address.address
  return {
    url: `http://${name}:${address.port}`,
    port: address.port,
    control: control !== null,
    close: () => {
      closed ??= new Promise((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()))
        server.closeAllConnections()
      })
      return closed
    },
  }
}

function isLoopback(address: string): boolean {
  return /^(?:::ffff:)?127\.|^::1$/.test(address)
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

async function serveControl(
  control: ControlServer,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  control.answer(request, response, await readBody(request, MAX_CONTROL_BYTES))
}

async function serveRequest(
  sandbox: Sandbox,
  request: IncomingMessage,
  response: ServerResponse,
  cors: boolean,
  onRequest: ServeSandboxOptions['onRequest'],
): Promise<void> {
  if (cors) {
    response.setHeader('access-control-allow-origin', '*')
    response.setHeader('access-control-expose-headers', '*')
    if (request.method === 'OPTIONS') return preflight(request, response)
  }
  // For a body that is too large, pass a placeholder that the sandbox rejects for its size.
  const body = (await readBody(request, MAX_BODY_BYTES)) ?? ' '.repeat(MAX_BODY_BYTES + 1)
  const url = sandboxUrlOf(sandbox, request.url ?? '/')
  const reply = await sandbox.handle(messageFrom(request, response, url, body))
  deliver(reply, request.socket, response)
  onRequest?.(reply.request)
}

function messageFrom(
  request: IncomingMessage,
  response: ServerResponse,
  url: string,
  body: string,
): SandboxMessage {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(request.headers))
    if (value !== undefined) headers[name] = String(value)
  return {
    method: request.method ?? 'GET',
    url,
    headers,
    body,
    /** Fires when the caller disconnects. Made on reading, because only a delayed response needs it. */
    get signal(): AbortSignal {
      const gone = new AbortController()
      if (response.destroyed) gone.abort()
      else
        response.once('close', () => {
          // The connection also closes after a complete response, which is not an abort.
          if (!response.writableFinished) gone.abort()
        })
      return gone.signal
    },
  }
}

function sandboxUrlOf(sandbox: Sandbox, target: string): string {
  return target.startsWith('/') ? sandbox.baseUrl + target : target
}

function preflight(request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(204, {
    'access-control-allow-methods': 'GET, POST',
    'access-control-allow-headers': request.headers['access-control-request-headers'] ?? '*',
    'access-control-max-age': '600',
  })
  response.end()
}

/** Resolves with null if the body is larger than `maxBytes`. */
function readBody(request: IncomingMessage, maxBytes: number): Promise<string | null> {
  return new Promise((resolve, reject) => {
    let chunks: Uint8Array[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      // Discard the chunks but continue reading: a caller that is still writing might not read the
      // response.
      if (size > maxBytes) chunks = []
      else chunks.push(chunk)
    })
    request.on('end', () => resolve(size > maxBytes ? null : Buffer.concat(chunks).toString('utf8')))
    request.on('error', reject)
  })
}

function deliver(reply: SandboxReply, socket: Socket, response: ServerResponse): void {
  const { delivery, status } = reply
  if (delivery.type === 'complete') {
    const empty = status === 204 || status === 205 || status === 304
    const headers = empty
      ? reply.headers
      : { ...reply.headers, 'content-length': Buffer.byteLength(reply.body) }
    // Pass a string: Node sends it in one packet with the headers, but a Buffer in a second packet.
    response.writeHead(status, headers).end(empty ? undefined : reply.body)
    return
  }
  const body = Buffer.from(reply.body)
  switch (delivery.type) {
    case 'refuse':
    case 'drop':
      socket.resetAndDestroy()
      return
    case 'stall':
      return
    case 'cut':
      if (delivery.cleanly) {
        response.writeHead(status, { ...reply.headers, connection: 'close' })
        response.end(body.subarray(0, delivery.after))
      } else {
        response.writeHead(status, { ...reply.headers, 'content-length': body.length })
        // Destroy the socket only after the write, so that the caller gets these bytes.
        response.write(body.subarray(0, delivery.after), () => socket.destroy())
      }
      return
    case 'stallBody':
      response.writeHead(status, { ...reply.headers, 'content-length': body.length })
      response.write(body.subarray(0, delivery.after))
      return
  }
}
