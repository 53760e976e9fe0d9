/** Tests the CORS server of the suites, because their results depend on its rules. */
import { Agent, type IncomingMessage, request } from 'node:http'
import { afterEach, expect, it } from 'vitest'
import { type CrossOriginService, serveCrossOrigin } from './support/cross-origin.ts'
import { type Listening, listen } from './support/listen.ts'

const ORIGIN = 'http://127.0.0.1:1'

let upstream: Listening | undefined
let service: CrossOriginService | undefined
const agent = new Agent({ keepAlive: true, maxSockets: 1 })
afterEach(async () => {
  agent.destroy()
  await service?.close()
  await upstream?.close()
})

/** A service behind the CORS server. Records the headers and the ports of its requests. */
async function serve() {
  const heard: IncomingMessage[] = []
  upstream = await listen((incoming, response) => {
    heard.push(incoming)
    response.writeHead(200, { connection: 'keep-alive, x-hop', 'x-hop': 'here', 'x-end': 'there' }).end('{}')
  })
  service = await serveCrossOrigin(upstream.url, ORIGIN)
  return { url: service.url, heard, service }
}

const ask = (url: string, method: string, headers: Record<string, string>) =>
  new Promise<IncomingMessage>((resolve, reject) => {
    request(url, { agent, method, headers })
      .on('response', (answer) => answer.resume().on('end', () => resolve(answer)))
      .on('error', reject)
      .end()
  })

it.each(['OPTIONS', 'GET', 'POST'])(
  'the cross-origin server accepts one origin and no other, %s',
  async (method) => {
    const { url } = await serve()
    const { headers } = await ask(url, method, { origin: ORIGIN })
    expect(headers['access-control-allow-origin']).toBe(ORIGIN)
    for (const other of [{ origin: 'http://127.0.0.1:2' }, { origin: 'null' }, {}]) {
      const { headers: refused } = await ask(url, method, other as Record<string, string>)
      expect(Object.keys(refused).filter((name) => name.startsWith('access-control-'))).toEqual([])
      expect(refused['vary']).toBe('origin')
    }
  },
)

it('the cross-origin server forwards end-to-end headers, and none of a single connection', async () => {
  const { url, heard } = await serve()
  const sent = {
    origin: ORIGIN,
    connection: 'keep-alive, x-mine',
    'x-mine': 'here',
    te: 'trailers',
    'x-kept': 'there',
  }
  const { headers } = await ask(url, 'POST', sent)
  expect(heard[0]?.headers).toMatchObject({ 'x-kept': 'there', host: new URL(upstream?.url ?? '').host })
  expect(heard[0]?.headers).not.toHaveProperty('x-mine')
  expect(heard[0]?.headers).not.toHaveProperty('te')
  expect(headers['x-end']).toBe('there')
  expect(headers).not.toHaveProperty('x-hop')
})

it('the cross-origin server keeps connections on both sides, and reports requests on a reused one', async () => {
  const {
    url,
    heard,
    service: { arrivals },
  } = await serve()
  for (let turn = 0; turn < 3; turn++)
    await ask(url, 'POST', { origin: ORIGIN, 'idempotency-key': `key-${turn}` })
  expect(arrivals).toEqual([
    { idempotencyKey: 'key-0', reused: false },
    { idempotencyKey: 'key-1', reused: true },
    { idempotencyKey: 'key-2', reused: true },
  ])
  expect(new Set(heard.map(({ socket }) => socket.remotePort)).size).toBe(1)
})
