import { createServer as createTlsServer } from 'node:https'
import net from 'node:net'
import tls from 'node:tls'
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { kyTransport } from '../../src/http/ky-transport.ts'
import { platformRuntime } from '../../src/runtime.ts'
import { serveSandbox } from '../../src/sandbox/http/server.ts'
import { attempt, transportUnderTest } from '../support/attempt.ts'
import { all } from '../support/calls.ts'
import { AUTHORITY, EXPIRED, FUTURE, KEY, OTHER_HOST, TRUSTED } from '../support/certificates.ts'
import { order } from '../support/lab.ts'
import { answerText, listening, rawServer } from '../support/raw-server.ts'
import { refusing, serving, trustAuthority, unsentOf } from './addresses.ts'

/** The verdict on an attempt whose connections fail with this error, as the system's would. */
async function verdictOn(error: Error): Promise<unknown> {
  const spy = vi.spyOn(net, 'connect').mockImplementation(() => {
    const socket = new net.Socket()
    setImmediate(() => socket.destroy(error))
    return socket
  })
  onTestFinished(() => spy.mockRestore())
  return unsentOf(await attempt('http://127.0.0.1:1234'))
}

const failure = (code: string, syscall?: string): Error =>
  Object.assign(new Error(`${syscall} ${code}`), { code, ...(syscall === undefined ? {} : { syscall }) })
const REFUSED = failure('ECONNREFUSED', 'connect')
/** The error of a host whose addresses fail with these. */
const ofAll = (errors: Error[]): Error => Object.assign(new AggregateError(errors), { code: 'ECONNREFUSED' })

test('with exclusive connections, a refused connection proves that nothing was sent', async () => {
  expect(await attempt(await refusing())).toEqual({
    kind: 'failed',
    unsent: 'unreachable',
    closed: false,
    detail: { name: 'Error', code: 'ECONNREFUSED', syscall: 'connect' },
  })
})

test('with exclusive connections, a host without an address proves that nothing was sent', async () => {
  const result = await attempt('http://customer-ordering.invalid/')
  expect(result).toMatchObject({ kind: 'failed', unsent: 'unreachable', closed: false })
  expect(result).toMatchObject({ detail: { code: expect.stringMatching(/^(ENOTFOUND|EAI_AGAIN)$/) } })
})

test.each([
  ['EHOSTUNREACH', 'connect'],
  ['ENETUNREACH', 'connect'],
  ['ETIMEDOUT', 'connect'],
  ['ECONNRESET', 'connect'],
  ['EADDRNOTAVAIL', 'connect'],
  ['EAI_AGAIN', 'getaddrinfo'],
  ['ENOTFOUND', 'getaddrinfo'],
  ['ENOTFOUND', 'queryA'],
  ['UND_ERR_CONNECT_TIMEOUT', undefined],
])('with exclusive connections, the error %s proves that nothing was sent (%s)', async (code, syscall) => {
  expect(await verdictOn(failure(code, syscall))).toBe('unreachable')
})

test("with exclusive connections, a port that Node's fetch rejects proves that nothing was sent", async () => {
  const result = await attempt('http://127.0.0.1:6000', {}, { transport: kyTransport() })
  expect(result).toMatchObject({ unsent: 'unreachable', detail: { code: 'BAD_PORT' } })
})

test('with exclusive connections, failures of all addresses prove that nothing was sent', async () => {
  expect(await verdictOn(ofAll([REFUSED, failure('ENETUNREACH', 'connect')]))).toBe('unreachable')
})

describe('with connections that nobody else has a hand in, a request may have been sent', () => {
  test.each([
    ['ECONNRESET', 'read'],
    ['EPIPE', 'write'],
    // The route was lost while the response was in transit. Recorded with network namespaces on
    // Linux (tcp_retries2 = 3): the service had committed the POST.
    ['ENETUNREACH', 'read'],
    ['EHOSTUNREACH', 'read'],
    ['EHOSTUNREACH', 'write'],
    ['ETIMEDOUT', 'read'],
    ['ETIMEDOUT', 'write'],
    ['ECONNREFUSED', 'read'],
    ['ECONNREFUSED', undefined],
    ['ENOTFOUND', undefined],
    ['ECONNABORTED', 'write'],
    ['ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC', undefined],
    ['EMFILE', undefined],
    ['SOMETHING_NEW', undefined],
  ])('with exclusive connections, a failure with %s proves nothing (%s)', async (code, syscall) => {
    expect(await verdictOn(failure(code, syscall))).toBe(false)
  })

  const reached = Object.assign(failure('ECONNRESET', 'read'), { cause: REFUSED })
  test.each([
    ['another way', [REFUSED, failure('ECONNRESET', 'read')]],
    ['after it was reached, with a connection failure as its cause', [REFUSED, reached]],
    ['without saying how', [REFUSED, new Error('x')]],
    ['on an established connection', [REFUSED, failure('EHOSTUNREACH', 'read')]],
    ['without any reason at all', []],
  ])('with exclusive connections, unreachable addresses prove nothing if one fails %s', async (_, errors) => {
    expect(await verdictOn(ofAll(errors))).toBe(false)
  })

  test.each([
    ['an address that is none', 'http://'],
    ['a protocol that is none', 'gopher://127.0.0.1'],
  ])('with exclusive connections, nothing is proven with %s', async (_what, url) => {
    expect(unsentOf(await attempt(url))).toBe(false)
  })
})

test('an order whose response is lost together with its route is charged once', async () => {
  let ahead = 0
  const now = (): number => Date.now() + ahead
  const sandbox = createSandbox({ now, behaviour: { keyLifetime: 3_600_000 } })
  sandbox.faults.add({
    match: { operation: 'createOrder' },
    times: 'always',
    action: { type: 'stall', commit: true },
  })
  const sockets: net.Socket[] = []
  const { connect } = net
  const spy = vi.spyOn(net, 'connect').mockImplementation((...args: unknown[]): net.Socket => {
    const socket: net.Socket = Reflect.apply(connect, net, args)
    sockets.push(socket)
    return socket
  })
  onTestFinished(() => spy.mockRestore())
  const server = await serveSandbox(sandbox, {
    onRequest: ({ delivery }) => {
      if (delivery === 'stall') for (const socket of sockets) socket.destroy(failure('EHOSTUNREACH', 'read'))
    },
  })
  onTestFinished(() => server.close())
  const { orders } = new CustomerOrderingClient(
    {
      baseUrl: server.url,
      apiKey: sandbox.apiKey,
      account: 'shop',
      maxRetries: 0,
      transport: transportUnderTest(),
    },
    { ...platformRuntime, now },
  )
  await expect(orders.create(order('r1'))).rejects.toMatchObject({ code: 'connection', charged: 'unknown' })
  sandbox.expectChargedOnce('r1')

  await all(orders.recover())
  sandbox.expectChargedOnce('r1')
  // The service has forgotten the key, so sending it again would buy again.
  ahead += 2 * 3_600_000
  await all(orders.recover())
  sandbox.expectChargedOnce('r1')
})

describe('a server with TLS', () => {
  /** Serves over TLS, to a process that trusts the tests' authority by default. */
  async function serveTls(cert: string, trusted = true): Promise<{ url: string; requests: () => number }> {
    if (trusted) trustAuthority()
    let requests = 0
    const server = createTlsServer({ key: KEY, cert }, (_request, response) => {
      requests++
      response.end('{}')
    })
    return { url: `https://${await serving(server)}`, requests: () => requests }
  }

  test('a server with a valid certificate receives the request', async () => {
    const server = await serveTls(AUTHORITY)
    expect(await attempt(server.url)).toMatchObject({ kind: 'answer', status: 200, text: '{}' })
    expect(server.requests()).toBe(1)
  })

  test.each([
    ['is self-signed', AUTHORITY, false, 'DEPTH_ZERO_SELF_SIGNED_CERT'],
    ['comes from an authority that nobody knows', OTHER_HOST, false, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
    ['is for another host', OTHER_HOST, true, 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ['has expired', EXPIRED, true, 'CERT_HAS_EXPIRED'],
    ['is not valid yet', FUTURE, true, 'CERT_NOT_YET_VALID'],
  ])('a server whose certificate %s receives nothing', async (_what, cert, trusted, code) => {
    const server = await serveTls(cert, trusted)
    const result = await attempt(server.url)
    expect(result).toMatchObject({ kind: 'failed', unsent: 'certificate', closed: false, detail: { code } })
    expect(server.requests()).toBe(0)
  })

  test('a server without TLS receives nothing, which only the undici transport proves', async () => {
    const server = await rawServer(
      (socket) => socket.write(answerText(200, '{}')),
      (socket) => socket.write('HTTP/1.1 400 X\r\n\r\n'),
    )
    const result = await attempt(server.url.replace('http:', 'https:'))
    expect(result).toMatchObject({
      unsent: transportUnderTest() === undefined ? false : 'unreachable',
      detail: { code: 'ERR_SSL_WRONG_VERSION_NUMBER' },
    })
    expect(server.requests).toEqual([])
  })

  test('a request may have been sent if the connection fails later with a TLS-like error', async () => {
    const sockets: net.Socket[] = []
    let requests = 0
    const tlsServer = createTlsServer({ ...TRUSTED, maxVersion: 'TLSv1.2' }, () => {
      requests++
      for (const socket of sockets) socket.write('HTTP/1.1 400 X\r\n\r\n')
    })
    trustAuthority()
    const inner = await listening(tlsServer)
    const outer = net.createServer((socket) => {
      sockets.push(socket)
      const upstream = net.connect(inner, '127.0.0.1')
      socket.pipe(upstream).pipe(socket)
      for (const end of [socket, upstream]) end.on('error', () => {})
    })
    const port = await listening(outer)
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy()
      tlsServer.close()
      outer.close()
    })
    expect(unsentOf(await attempt(`https://127.0.0.1:${port}`))).toBe(false)
    expect(requests).toBe(1)

    const socket = tls.connect({ port, host: '127.0.0.1', ca: AUTHORITY })
    socket.resume().write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    const error = await new Promise((resolve) => socket.on('error', resolve))
    socket.destroy()
    expect(requests).toBe(2)
    expect(error).toMatchObject({ code: 'ERR_SSL_WRONG_VERSION_NUMBER' })
  })

  test("with the caller's fetch, a rejected certificate does not prove that nothing was sent", async () => {
    const server = await serveTls(AUTHORITY, false)
    const transport = kyTransport((...args) => globalThis.fetch(...args))
    const result = await attempt(server.url, {}, { transport })
    expect(result).toMatchObject({ unsent: false, detail: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' } })
  })
})
