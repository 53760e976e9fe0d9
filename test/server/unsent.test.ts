import { createServer as createTlsServer } from 'node:https'
import net from 'node:net'
import tls from 'node:tls'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { type AttemptResult, createTransport } from '../../src/http/transport.ts'
import { platformRuntime } from '../../src/runtime.ts'
import { attempt } from './support/attempt.ts'
import { AUTHORITY, EXPIRED, FUTURE, KEY, OTHER_HOST, VALID } from './support/certificates.ts'
import { answerText, listening, rawServer } from './support/raw-server.ts'

/** Where nobody listens: a port that was free a moment ago. */
async function refusing(): Promise<string> {
  const server = net.createServer()
  const port = await listening(server)
  await new Promise((resolve) => server.close(resolve))
  return `http://127.0.0.1:${port}`
}

const unsentOf = (result: AttemptResult): unknown => (result.kind === 'failed' ? result.unsent : result.kind)

/** Makes the next connections of this process fail as if the system said so. */
function connectionsFail(error: Error): void {
  const spy = vi.spyOn(net, 'connect').mockImplementation(() => {
    const socket = new net.Socket()
    setImmediate(() => socket.destroy(error))
    return socket
  })
  onTestFinished(() => spy.mockRestore())
}

const failure = (code: string, syscall?: string): Error =>
  Object.assign(new Error(`${syscall} ${code}`), { code, ...(syscall === undefined ? {} : { syscall }) })

describe("with Node's own fetch, a request is surely unsent", () => {
  test('if the connection is refused', async () => {
    expect(await attempt(await refusing())).toEqual({
      kind: 'failed',
      unsent: 'unreachable',
      closed: false,
      detail: { name: 'Error', code: 'ECONNREFUSED', syscall: 'connect' },
    })
  })

  test('if the host has no address', async () => {
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
    ['UND_ERR_CONNECT_TIMEOUT', undefined],
  ])('if connecting fails with %s (%s)', async (code, syscall) => {
    connectionsFail(failure(code, syscall))
    expect(unsentOf(await attempt('http://127.0.0.1:1234'))).toBe('unreachable')
  })

  test('if every address of a host fails', async () => {
    const errors = [failure('ECONNREFUSED', 'connect'), failure('ENETUNREACH', 'connect')]
    connectionsFail(Object.assign(new AggregateError(errors), { code: 'ECONNREFUSED' }))
    expect(unsentOf(await attempt('http://127.0.0.1:1234'))).toBe('unreachable')
  })
})

describe("with Node's own fetch, a request may have been sent", () => {
  test.each([
    ['ECONNRESET', 'read'],
    ['EPIPE', 'write'],
    ['ETIMEDOUT', 'read'],
    ['ECONNABORTED', 'write'],
    ['ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC', undefined],
    ['EMFILE', undefined],
    ['SOMETHING_NEW', undefined],
  ])('if the connection fails with %s (%s)', async (code, syscall) => {
    connectionsFail(failure(code, syscall))
    expect(unsentOf(await attempt('http://127.0.0.1:1234'))).toBe(false)
  })

  test.each([
    ['another way', [failure('ECONNREFUSED', 'connect'), failure('ECONNRESET', 'read')]],
    ['without saying how', [failure('ECONNREFUSED', 'connect'), new Error('x')]],
  ])('if only some addresses of a host could not be reached and one failed %s', async (_how, errors) => {
    connectionsFail(Object.assign(new AggregateError(errors), { code: 'ECONNREFUSED' }))
    expect(unsentOf(await attempt('http://127.0.0.1:1234'))).toBe(false)
  })

  test.each([
    ['a port that fetch refuses', 'http://127.0.0.1:9'],
    ['an address that is none', 'http://'],
    ['a protocol that is none', 'gopher://127.0.0.1'],
  ])('as far as anybody can prove, with %s', async (_what, url) => {
    expect(unsentOf(await attempt(url))).toBe(false)
  })
})

describe('a server with TLS', () => {
  /** Serves over TLS, to a process that trusts the tests' authority unless told otherwise. */
  async function serveTls(cert: string, trusted = true): Promise<{ url: string; requests: () => number }> {
    const before = tls.getCACertificates('default')
    if (trusted) tls.setDefaultCACertificates([...before, AUTHORITY])
    let requests = 0
    const server = createTlsServer({ key: KEY, cert }, (_request, response) => {
      requests++
      response.end('{}')
    })
    const port = await listening(server)
    onTestFinished(async () => {
      tls.setDefaultCACertificates(before)
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    })
    return { url: `https://127.0.0.1:${port}`, requests: () => requests }
  }

  test('whose certificate is good is spoken to', async () => {
    const server = await serveTls(VALID)
    expect(await attempt(server.url)).toMatchObject({ kind: 'answer', status: 200, text: '{}' })
    expect(server.requests()).toBe(1)
  })

  test.each([
    ['is self-signed', AUTHORITY, false, 'DEPTH_ZERO_SELF_SIGNED_CERT'],
    ['comes from an authority that nobody knows', VALID, false, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
    ['is for another host', OTHER_HOST, true, 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ['has expired', EXPIRED, true, 'CERT_HAS_EXPIRED'],
    ['is not valid yet', FUTURE, true, 'CERT_NOT_YET_VALID'],
  ])('whose certificate %s gets nothing', async (_what, cert, trusted, code) => {
    const server = await serveTls(cert, trusted)
    const result = await attempt(server.url)
    expect(result).toMatchObject({ kind: 'failed', unsent: 'certificate', closed: false, detail: { code } })
    expect(server.requests()).toBe(0)
  })

  test('that does not speak TLS at all proves nothing', async () => {
    const server = await rawServer(
      (socket) => socket.write(answerText(200, '{}')),
      (socket) => socket.write('HTTP/1.1 400 X\r\n\r\n'),
    )
    const result = await attempt(server.url.replace('http:', 'https:'))
    expect(result).toMatchObject({ kind: 'failed', unsent: false })
    expect(server.requests).toEqual([])
  })

  test('whose certificate is rejected is not said to be unsent by a fetch of the caller', async () => {
    const server = await serveTls(AUTHORITY, false)
    const result = await attempt(server.url, {}, { fetch: (...args) => globalThis.fetch(...args) })
    expect(result).toMatchObject({ unsent: false, detail: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' } })
  })
})

describe('a fetch that is not the one that Node came with never proves that nothing was sent', () => {
  const original = globalThis.fetch

  /** What a transport says of a refused connection when the global fetch is another one. */
  async function patched(fetch: typeof globalThis.fetch, when: 'before' | 'after'): Promise<unknown> {
    onTestFinished(() => {
      globalThis.fetch = original
    })
    const url = await refusing()
    if (when === 'before') globalThis.fetch = fetch
    const transport = createTransport({ runtime: platformRuntime })
    globalThis.fetch = fetch
    return unsentOf(await transport({ method: 'GET', url, headers: {}, timeout: 10_000, maxBytes: 100 }))
  }

  const wrappers: Record<string, typeof globalThis.fetch> = {
    'a function': (...args) => original(...args),
    'a function that names undici': (...args) => {
      const undici = { fetch: original }
      return undici.fetch(...args)
    },
    'a bound function': original.bind(globalThis),
    'a proxy': new Proxy(original, { apply: (target, self, args) => Reflect.apply(target, self, args) }),
    'a function with the text of another': Object.assign(
      ((...args) => original(...args)) as typeof globalThis.fetch,
      { toString: () => original.toString() },
    ),
  }
  for (const when of ['before', 'after'] as const) {
    test.each(Object.entries(wrappers))(
      `the global one is %s, patched ${when} the client was made`,
      async (_what, wrapper) => {
        expect(await patched(wrapper, when)).toBe(false)
      },
    )
  }

  test('the caller brought it, even if it is the same function', async () => {
    expect(unsentOf(await attempt(await refusing(), {}, { fetch: original }))).toBe(false)
  })

  test('but it does if it was never patched, or is no longer', async () => {
    expect(await patched(original, 'before')).toBe('unreachable')
  })
})

describe('a dispatcher that is not the one that Node came with never proves that nothing was sent', () => {
  type Slots = Record<symbol, unknown>
  const slots = globalThis as unknown as Slots
  const generations = [1, 2].map((generation) => Symbol.for(`undici.globalDispatcher.${generation}`))

  /** The dispatcher in use, and a way to put others in its places until the test ends. */
  async function current(): Promise<{
    agent: { dispatch(...args: unknown[]): unknown }
    put(values: unknown[]): void
  }> {
    // Node loads its fetch, and with it the dispatcher, on first use.
    await attempt(await refusing())
    const before = generations.map((name) => slots[name])
    onTestFinished(() => {
      for (const [index, name] of generations.entries()) slots[name] = before[index]
    })
    return {
      agent: (before[1] ?? before[0]) as { dispatch(): unknown },
      put: (values) => {
        for (const [index, name] of generations.entries()) slots[name] = values[index]
      },
    }
  }
  const ask = async (): Promise<unknown> => unsentOf(await attempt(await refusing()))

  type Agent = { dispatch(...args: unknown[]): unknown }
  const foreign: Record<string, (agent: Agent) => unknown> = {
    'composed of interceptors, as a proxy': (agent) =>
      new Proxy(agent, {
        get: (target, name) =>
          name === 'dispatch' ? (...args: unknown[]) => target.dispatch(...args) : Reflect.get(target, name),
      }),
    'an object that hands on': (agent) => ({ dispatch: (...args: unknown[]) => agent.dispatch(...args) }),
    'the same one with a dispatch of its own': (agent) => {
      const dispatch = agent.dispatch.bind(agent)
      onTestFinished(() => {
        delete (agent as Partial<Agent>).dispatch
      })
      return Object.assign(agent, { dispatch: (...args: unknown[]) => dispatch(...args) })
    },
    'of another class': (agent) => {
      class RetryAgent {
        dispatch(...args: unknown[]): unknown {
          return agent.dispatch(...args)
        }
      }
      return new RetryAgent()
    },
    'of another class of the same name': (agent) => {
      class Agent {
        dispatch(...args: unknown[]): unknown {
          return agent.dispatch(...args)
        }
      }
      return new Agent()
    },
    'one whose connections are made by somebody else': (agent) => {
      const name = Object.getOwnPropertySymbols(agent).find(({ description }) => description === 'factory')
      if (name === undefined) throw new Error('no factory')
      const factory = (agent as unknown as Slots)[name] as (...args: unknown[]) => unknown
      onTestFinished(() => {
        ;(agent as unknown as Slots)[name] = factory
      })
      return Object.assign(agent, { [name]: (...args: unknown[]) => factory(...args) })
    },
  }

  test.each(Object.entries(foreign))('%s', async (_what, make) => {
    const { agent, put } = await current()
    const dispatcher = make(agent)
    put([dispatcher, dispatcher])
    expect(await ask()).toBe(false)
  })

  test('even if it stands in one of the places only', async () => {
    const { agent, put } = await current()
    const other = { dispatch: (...args: unknown[]) => agent.dispatch(...args) }
    put([other, agent])
    expect(await ask()).toBe(false)
    put([agent, other])
    expect(await ask()).toBe(false)
  })

  test('but it does if the first place holds the wrapper that undici 8 (Node 26) puts there', async () => {
    const { agent, put } = await current()
    class Dispatcher1Wrapper {
      dispatch(...args: unknown[]): unknown {
        return agent.dispatch(...args)
      }
    }
    put([new Dispatcher1Wrapper(), agent])
    expect(await ask()).toBe('unreachable')
    put([new Dispatcher1Wrapper(), undefined])
    expect(await ask()).toBe(false)
  })
})
