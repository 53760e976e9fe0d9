import { describe, expect, test } from 'vitest'
import { kyTransport } from '../../src/http/ky-transport.ts'
import { asRead, attempt, transportUnderTest } from '../support/attempt.ts'
import { sample } from '../support/effort.ts'
import { answerText, rawServer, responding } from '../support/raw-server.ts'

/** Headers of the connection, and those that every fetch of Node adds. */
const PLATFORM = ['host', 'connection', 'accept-encoding']
if (transportUnderTest() === undefined)
  PLATFORM.push('accept', 'accept-language', 'sec-fetch-mode', 'user-agent')

test('a request on the wire contains only what was requested and what the platform always sends', async () => {
  const server = await responding(answerText(201, '{}'))
  const headers = {
    authorization: 'Bearer key',
    accept: 'application/json',
    'content-type': 'application/json',
    'idempotency-key': 'idem_1',
    'x-own': 'a  b',
    'user-agent': 'mine/1.0',
  }
  const body = '{"note":"ünï 注文 👍 \\u0000","quantity":1}'
  const result = await attempt(`${server.url}/base/v1/orders?b=2&a=%20`, { headers, body })
  expect(result).toMatchObject({ kind: 'answer', status: 201, text: '{}' })
  const [request] = server.requests
  expect(request?.line).toBe('POST /base/v1/orders?b=2&a=%20 HTTP/1.1')
  expect(request?.body).toBe(body)
  const sent = Object.fromEntries(request?.headers ?? [])
  expect(sent).toMatchObject({ ...headers, 'content-length': String(Buffer.byteLength(body)) })
  const expected = new Set([...Object.keys(headers), ...PLATFORM, 'content-length'])
  expect(Object.keys(sent).filter((name) => !expected.has(name))).toEqual([])
  expect(request?.headers).toHaveLength(Object.keys(sent).length)
})

test('a request without a body has no headers of a body', async () => {
  const server = await responding(answerText(200, '{}'))
  await attempt(server.url, { ...asRead, headers: { accept: 'application/json' } })
  expect(server.requests[0]?.line).toBe('GET / HTTP/1.1')
  expect(server.requests[0]?.body).toBe('')
  const names = server.requests[0]?.headers.map(([name]) => name) ?? []
  for (const name of ['content-length', 'content-type', 'transfer-encoding'])
    expect(names).not.toContain(name)
})

test.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD'])('the method may be %s', async (method) => {
  const server = await responding(answerText(200, method === 'HEAD' ? '' : '{}'))
  const body = method === 'GET' || method === 'HEAD' ? undefined : '{}'
  await expect(attempt(server.url, { method, body })).resolves.toMatchObject({ status: 200 })
  expect(server.requests[0]?.line).toBe(`${method} / HTTP/1.1`)
})

test("one attempt is one request for every error status, but Node's fetch repeats it after a 421", async () => {
  const repeated = transportUnderTest() === undefined ? [421] : []
  // Every seventh includes 407 and 421.
  const statuses = sample(
    Array.from({ length: 200 }, (_, index) => 400 + index),
    7,
  )
  for (const status of statuses) {
    const server = await responding(answerText(status, '{"code":"X"}', ['retry-after: 0']))
    for (const method of ['POST', 'GET']) {
      const body = method === 'GET' ? undefined : '{}'
      const result = await attempt(server.url, { method, body })
      // Node's fetch fails after a 407, which asks for a proxy's password.
      if (status !== 407 || repeated.length === 0)
        expect(result).toMatchObject({ kind: 'answer', status, text: '{"code":"X"}' })
    }
    expect([status, server.requests.length]).toEqual([status, repeated.includes(status) ? 4 : 2])
  }
})

test.each([301, 302, 303, 307, 308])('redirect %i is not followed, to any server', async (status) => {
  const target = await responding(answerText(201, '{}'))
  const server = await rawServer((socket, _request, count) => {
    const location = count === 1 ? `${target.url}/v1/orders` : '/elsewhere'
    socket.write(answerText(status, '{"id":"ord_1"}', [`location: ${location}`, 'x-request-id: req_1']))
  })
  for (const changes of [{}, asRead]) {
    const result = await attempt(server.url, changes)
    expect(result).toMatchObject({ kind: 'redirect', status })
    expect(result).toHaveProperty('headers')
  }
  expect(server.requests).toHaveLength(2)
  expect([target.connections(), target.requests]).toEqual([0, []])
})

test.each([300, 304, 305, 399])('redirect %i without a location is treated the same', async (status) => {
  const server = await responding(answerText(status, ''))
  expect(await attempt(server.url)).toMatchObject({ kind: 'redirect', status })
})

test('the endless body of a redirect is not read', async () => {
  const server = await responding('HTTP/1.1 307 X\r\nlocation: /x\r\ncontent-length: 1000\r\n\r\nx')
  const closed = server.closed()
  expect(await attempt(server.url)).toMatchObject({ kind: 'redirect' })
  await closed
})

describe('odd answers', () => {
  const INTERIM = 'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n'
  const INVALID = Buffer.from('HTTP/1.1 200 X\r\ncontent-length: 3\r\n\r\na\xffb', 'latin1')
  const withoutBody = (status: number): string => `HTTP/1.1 ${status} X\r\ncontent-length: 0\r\n\r\n`
  test.each<[string, bytes: string | Uint8Array, status: number, text: string]>([
    ['interim responses, which are skipped', INTERIM + answerText(201, '{"a":1}'), 201, '{"a":1}'],
    ['a byte order mark, which is not part of the text', answerText(200, '\ufeff{"a":1}'), 200, '{"a":1}'],
    ['invalid bytes, which are replaced', INVALID, 200, 'a\ufffdb'],
    ['status 200 and no body', withoutBody(200), 200, ''],
    ['status 201 and no body', withoutBody(201), 201, ''],
    ['status 204 and no body', withoutBody(204), 204, ''],
    ['status 205 and no body', withoutBody(205), 205, ''],
  ])('a response is read with %s', async (_what, bytes, status, text) => {
    const server = await responding(bytes)
    const result = await attempt(server.url)
    expect(result).toMatchObject({ kind: 'answer', status, text })
    expect(result).toHaveProperty('problem', undefined)
  })

  test.each([599, 600, 999])('status %i is a response or a failure, never an exception', async (status) => {
    const server = await responding(answerText(status, '{}'))
    const result = await attempt(server.url)
    expect(['answer', 'failed']).toContain(result.kind)
    if (result.kind === 'failed') expect(result.unsent).toBe(false)
  })

  test.each([
    ['a switch of protocols', 'HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'],
    ['no HTTP at all', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['another protocol', 'HTTP/9.9 200 OK\r\n\r\n'],
    ['a status that is none', 'HTTP/1.1 abc X\r\n\r\n'],
    ['a header that is none', 'HTTP/1.1 200 OK\r\nno colon\r\n\r\n'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx'],
    ['two framings', 'HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['headers without end', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(100_000)}`],
  ])('%s is a failure that proves nothing', async (_what, bytes) => {
    const server = await responding(bytes)
    expect(await attempt(server.url)).toMatchObject({ kind: 'failed', unsent: false })
  })

  test('split characters are joined', async () => {
    const server = await rawServer((socket) => {
      const bytes = Buffer.from('"注👍"')
      socket.write(`HTTP/1.1 200 X\r\ncontent-length: ${bytes.length}\r\n\r\n`)
      socket.setNoDelay(true)
      let sent = 0
      const next = (): void => {
        if (sent === bytes.length) return
        socket.write(bytes.subarray(sent, ++sent), () => setImmediate(next))
      }
      next()
    })
    expect(await attempt(server.url)).toMatchObject({ text: '"注👍"' })
  })
})

test.each(['Bearer a\r\nx-evil: 1', 'a\nb', 'a\0b', 'ключ'])(
  'headers that no request can carry end the attempt unsent, and are not quoted: %j',
  async (value) => {
    const server = await responding(answerText(200, '{}'))
    const result = await attempt(server.url, { headers: { authorization: value } })
    // undici identifies the error by a code, not by the text.
    const detail =
      transportUnderTest() === undefined
        ? { name: 'TypeError' }
        : { name: 'InvalidArgumentError', code: 'UND_ERR_INVALID_ARG' }
    expect(result).toEqual({ kind: 'failed', unsent: false, closed: false, detail })
    expect(server.connections()).toBe(0)
  },
)

test.each([
  ['a success', 200, '{"a":1}'],
  ['an error whose body was read', 500, '{"code":"X"}'],
  ['an answer without a body', 200, ''],
])('connections are reused after %s', async (_what, status, body) => {
  const server = await responding(answerText(status, body))
  for (let call = 0; call < 10; call++) await attempt(server.url)
  // Node's pool may open a second connection, because it learns late that the first is free.
  expect(server.connections()).toBeLessThanOrEqual(2)
  expect(server.requests).toHaveLength(10)
})

test('idle connections that the server closed do not make the next attempt fail', async () => {
  let last: { end(): void } | undefined
  const server = await rawServer((socket) => {
    last = socket
    socket.write(answerText(200, '{}'))
  })
  await attempt(server.url)
  const closed = server.closed()
  last?.end()
  await closed
  expect(await attempt(server.url)).toMatchObject({ status: 200 })
  expect(server.requests).toHaveLength(2)
})

test('connections reset by a later request are reported as closed, and nothing is resent', async () => {
  let reset = false
  const server = await rawServer((socket) => {
    if (reset) socket.resetAndDestroy()
    else socket.write(answerText(200, '{}'))
  })
  for (let call = 0; call < 3; call++) await attempt(server.url)
  const before = server.connections()
  reset = true
  expect(await attempt(server.url)).toMatchObject({ kind: 'failed', closed: true, unsent: false })
  expect([server.connections(), server.requests.length]).toEqual([before, 4])
})

test('concurrent attempts have separate connections, each with its own response', async () => {
  const server = await rawServer((socket, { body }) => socket.write(answerText(200, body)))
  const transport = kyTransport()
  const results = await Promise.all(
    Array.from({ length: 20 }, (_, index) => attempt(server.url, { body: `${index}` }, { transport })),
  )
  expect(results.map((result) => 'text' in result && result.text)).toEqual(
    Array.from({ length: 20 }, (_, index) => `${index}`),
  )
})
