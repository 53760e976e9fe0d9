import { getEventListeners } from 'node:events'
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import { constants, createGzip, gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { MAX_ERROR_BYTES } from '../../src/http/attempt.ts'
import { kyTransport } from '../../src/http/ky-transport.ts'
import { asRead, attempt } from '../support/attempt.ts'
import { deferred } from '../support/calls.ts'
import { used } from '../support/heap.ts'
import { answerText, rawServer, responding, type Serve } from '../support/raw-server.ts'
import { fakeRuntime } from '../support/runtime.ts'
import { serving } from './addresses.ts'

const chunked = 'HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n'
const withLength = 'HTTP/1.1 201 Created\r\ncontent-length: 100\r\n\r\n'
const reset = (socket: Socket): unknown => socket.resetAndDestroy()

describe('a connection that breaks', () => {
  const lost = { kind: 'failed', unsent: false, closed: true }

  const HALF = 'HTTP/1.1 201 Created\r\ncontent-le'
  const early: Record<string, readonly [Serve, code: string]> = {
    'is reset before any response': [reset, 'ECONNRESET'],
    'ends before any response': [(socket) => socket.end(), 'UND_ERR_SOCKET'],
    'ends within the headers': [(socket) => socket.end(HALF), 'UND_ERR_SOCKET'],
    'is reset within the headers': [(socket) => socket.write(HALF, () => reset(socket)), 'ECONNRESET'],
  }
  test.each(Object.entries(early))('a connection that %s proves nothing', async (_how, [serve, code]) => {
    const server = await rawServer(serve)
    for (const changes of [{}, asRead]) {
      const result = await attempt(server.url, changes)
      expect(result).toMatchObject({ ...lost, detail: { code } })
    }
    expect(server.requests).toHaveLength(2)
  })

  test('a new connection that breaks is unsent if connecting failed, and proves nothing otherwise', async () => {
    const server = await rawServer(() => {}, reset)
    for (let count = 0; count < 20; count++) {
      const result = await attempt(server.url)
      if (result.kind !== 'failed') throw new Error(result.kind)
      expect(result.unsent).toBe(result.detail.syscall === 'connect' ? 'unreachable' : false)
    }
    expect(server.requests).toEqual([])
  })

  const cut: Record<string, Serve> = {
    'ends amid a body of known length': (socket) => socket.end(`${withLength}{"id":`),
    'ends before the first byte of the body': (socket) => socket.end(withLength),
    'is reset amid a body of known length': (socket) =>
      socket.write(`${withLength}{"id":`, () => reset(socket)),
    'ends amid a chunk': (socket) => socket.end(`${chunked}20\r\n{"id":`),
    'ends between chunks': (socket) => socket.end(`${chunked}6\r\n{"id":\r\n`),
    'sends a chunk that is none': (socket) => socket.end(`${chunked}6\r\n{"id":\r\nzz\r\n`),
    'ends amid a compressed body': (socket) => {
      const body = gzipSync('{"id":"ord_1","status":"pending","amount":100}')
      socket.write(chunked.replace('chunked', 'chunked\r\ncontent-encoding: gzip'))
      socket.write(`${body.length.toString(16)}\r\n`)
      socket.end(body.subarray(0, 20))
    },
  }
  test.each(Object.entries(cut))('a connection that %s leads to a truncated body', async (_how, serve) => {
    const server = await rawServer(serve)
    const result = await attempt(server.url)
    expect(result).toMatchObject({ kind: 'answer', status: 201, problem: 'cut' })
    expect(server.requests).toHaveLength(1)
  })

  test('a body that falsely claims gzip cannot be decompressed', async () => {
    const server = await responding(answerText(201, '{"id":"ord_1"}', ['content-encoding: gzip']))
    expect(await attempt(server.url)).toMatchObject({ status: 201, problem: 'undecodable' })
  })

  test('a truncated body that ends with its connection is not noticed, so readers must check it', async () => {
    const server = await rawServer((socket) => socket.end('HTTP/1.1 201 Created\r\n\r\n{"id":"ord_1","sta'))
    const result = await attempt(server.url)
    expect(result).toMatchObject({ kind: 'answer', status: 201, text: '{"id":"ord_1","sta' })
    expect(result).toHaveProperty('problem', undefined)
  })
})

test.each<[string, (socket: Socket) => unknown]>([
  ['never responds', () => {}],
  ['stops within the headers', (socket) => socket.write('HTTP/1.1 201 Created\r\ncontent')],
  ['sends interim responses', (socket) => socket.write('HTTP/1.1 102 Processing\r\n\r\n'.repeat(100))],
])('a server that %s leads to a timeout, and the connection is closed', async (_what, serve) => {
  const runtime = fakeRuntime()
  const served = deferred()
  const server = await rawServer((socket) => {
    serve(socket)
    served.resolve()
  })
  const closed = server.closed()
  const pending = attempt(server.url, { timeout: 5000 }, { runtime })
  await served.promise
  await runtime.advance(4999)
  expect(runtime.timers).toBe(1)
  await runtime.advance(1)
  expect(await pending).toEqual({ kind: 'timeout' })
  // It could not be used again.
  await closed
  expect(runtime.timers).toBe(0)
})

describe('a body that stalls', () => {
  /** Reads until the headers have arrived, then lets the time or the caller end the attempt. */
  async function stalled(
    bytes: string,
    end: (runtime: ReturnType<typeof fakeRuntime>, controller: AbortController) => unknown,
  ): Promise<unknown> {
    const runtime = fakeRuntime()
    const controller = new AbortController()
    const server = await responding(bytes)
    const closed = server.closed()
    const headers = deferred()
    const fetch: typeof globalThis.fetch = async (...args) => {
      const response = await globalThis.fetch(...args)
      headers.resolve()
      return response
    }
    const pending = attempt(
      server.url,
      { timeout: 5000, signal: controller.signal },
      { runtime, transport: kyTransport(fetch) },
    )
    await headers.promise
    await runtime.settle()
    await end(runtime, controller)
    const result = await pending
    await closed
    expect(runtime.timers).toBe(0)
    expect(getEventListeners(controller.signal, 'abort')).toEqual([])
    return result
  }
  const bodies = {
    'before its first byte': withLength,
    'after some bytes': `${withLength}{"id":`,
    'after a chunk': `${chunked}6\r\n{"id":\r\n`,
    'in an error': withLength.replace('201', '402'),
  }

  type End = Parameters<typeof stalled>[1]
  const ends: [string, problem: string, End][] = [
    ['the attempt timeout', 'timeout', (runtime) => runtime.advance(5000)],
    ["the caller's signal", 'aborted', (_runtime, controller) => controller.abort('enough')],
  ]
  const cases = ends.flatMap(([who, problem, end]) =>
    Object.entries(bodies).map(([where, bytes]) => ({ who, where, problem, end, bytes })),
  )
  test.each(cases)('$who ends a body that stalls $where', async ({ problem, end, bytes }) => {
    const status = bytes.includes('402') ? 402 : 201
    expect(await stalled(bytes, end)).toMatchObject({ kind: 'answer', status, problem })
  })
})

test('a signal that has fired prevents a send', async () => {
  const server = await responding(answerText(200, '{}'))
  const result = await attempt(server.url, { signal: AbortSignal.abort() })
  expect(result).toMatchObject({ kind: 'failed', unsent: 'late' })
  expect(server.connections()).toBe(0)
})

test('a signal ends the wait for a response, and the connection', async () => {
  const controller = new AbortController()
  const server = await rawServer(() => controller.abort())
  const closed = server.closed()
  expect(await attempt(server.url, { signal: controller.signal })).toEqual({ kind: 'aborted' })
  await closed
  expect(getEventListeners(controller.signal, 'abort')).toEqual([])
})

describe('a body that is too large', () => {
  /** Peak memory while something runs, minus the memory before, in bytes. */
  async function memoryOf<T>(work: () => Promise<T>): Promise<{ readonly result: T; readonly peak: number }> {
    const before = used()
    let peak = 0
    const timer = setInterval(() => {
      peak = Math.max(peak, used() - before)
    }, 2)
    try {
      const result = await work()
      return { result, peak: Math.max(peak, used() - before) }
    } finally {
      clearInterval(timer)
    }
  }

  /** Streams a body of any size, as fast as it is read. */
  async function streaming(status: number, bytes: number, gzip: boolean) {
    const chunk = Buffer.alloc(65_536, ' ')
    let sent = 0
    const server = createServer((_request, response) => {
      response.writeHead(status, gzip ? { 'content-encoding': 'gzip' } : {})
      const out = gzip ? createGzip({ level: constants.Z_BEST_SPEED }) : response
      if (out !== response) {
        out.pipe(response)
        out.on('error', () => {})
      }
      const more = (): void => {
        while (sent < bytes && !response.destroyed) {
          sent += chunk.length
          if (!out.write(chunk)) return void out.once('drain', more)
        }
        if (!response.destroyed) out.end()
      }
      more()
    })
    return { url: `http://${await serving(server)}`, sent: () => sent }
  }

  const cases: [string, status: number, bytes: number, gzip: boolean][] = [
    ['a gzip bomb of 10 GB in a success', 200, 10 * 1024 ** 3, true],
    ['a gzip bomb of 10 GB in an error', 500, 10 * 1024 ** 3, true],
    ['100 MB in a success', 201, 100 * 1024 ** 2, false],
    ['100 MB in an error', 502, 100 * 1024 ** 2, false],
  ]
  test.each(cases)('reading %s stops at the maximum number of bytes', async (_what, status, bytes, gzip) => {
    const server = await streaming(status, bytes, gzip)
    const started = performance.now()
    const { result, peak } = await memoryOf(() => attempt(server.url))
    expect(result).toMatchObject({ kind: 'answer', status, problem: 'too_large' })
    expect(performance.now() - started).toBeLessThan(5000)
    expect(peak).toBeLessThan(64 * 1024 ** 2)
    expect(server.sent()).toBeLessThan(bytes)
  })

  const exactly = async (status: number, bytes: number, gzip: boolean): Promise<unknown> => {
    const text = ' '.repeat(bytes)
    const body = gzip ? gzipSync(text) : Buffer.from(text)
    const encoding = gzip ? 'content-encoding: gzip\r\n' : ''
    const head = `HTTP/1.1 ${status} X\r\n${encoding}content-length: ${body.length}\r\n\r\n`
    const server = await responding(Buffer.concat([Buffer.from(head), body]))
    const result = await attempt(server.url, { maxBytes: 5000 })
    if (result.kind !== 'answer') throw new Error(result.kind)
    return result.problem ?? result.text.length
  }

  test.each([false, true])('a body is measured after its decompression (compressed: %s)', async (gzip) => {
    expect(await exactly(200, 5000, gzip)).toBe(5000)
    expect(await exactly(200, 5001, gzip)).toBe('too_large')
    expect(await exactly(400, MAX_ERROR_BYTES, gzip)).toBe(MAX_ERROR_BYTES)
    expect(await exactly(400, MAX_ERROR_BYTES + 1, gzip)).toBe('too_large')
  })

  test('the size of a body is counted in bytes, not in characters', async () => {
    const server = await responding(answerText(200, '注'.repeat(2000)))
    expect(await attempt(server.url, { maxBytes: 5999 })).toMatchObject({ problem: 'too_large' })
    expect(await attempt(server.url, { maxBytes: 6000 })).toHaveProperty('problem', undefined)
  })

  test('a body in very many pieces needs no more memory than one in few', async () => {
    const pieces = 200_000
    const server = await responding(`${chunked}${'1\r\nx\r\n'.repeat(pieces)}0\r\n\r\n`)
    const { result, peak } = await memoryOf(() => attempt(server.url))
    expect(result).toMatchObject({ kind: 'answer', text: 'x'.repeat(pieces) })
    expect(peak).toBeLessThan(128 * 1024 ** 2)
  })
})
