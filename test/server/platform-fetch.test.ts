import type { Dispatcher } from 'undici'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { kyTransport } from '../../src/http/ky-transport.ts'
import { asRead, attempt } from '../support/attempt.ts'
import { refusing, unsentOf } from './addresses.ts'

describe('a fetch that is not the one that Node came with never proves that nothing was sent', () => {
  const original = globalThis.fetch

  /** The transport's verdict on a refused connection if the global fetch is replaced. */
  async function patched(fetch: typeof globalThis.fetch, when: 'before' | 'after'): Promise<unknown> {
    onTestFinished(() => void vi.unstubAllGlobals())
    const url = await refusing()
    if (when === 'before') vi.stubGlobal('fetch', fetch)
    const transport = kyTransport()
    vi.stubGlobal('fetch', fetch)
    return unsentOf(await attempt(url, asRead, { transport }))
  }

  const wrappers: Record<string, typeof globalThis.fetch> = {
    'a function': (...args) => original(...args),
    'a function that names undici': (...args) => {
      const undici = { fetch: original }
      return undici.fetch(...args)
    },
    'a bound function': original.bind(globalThis),
    'a function that is gone afterwards': (...args) => {
      vi.unstubAllGlobals()
      return original(...args)
    },
    'a proxy': new Proxy(original, { apply: (target, self, args) => Reflect.apply(target, self, args) }),
    'a function with the text of another': Object.assign(
      ((...args) => original(...args)) as typeof globalThis.fetch,
      { toString: () => original.toString() },
    ),
  }
  for (const when of ['before', 'after'] as const) {
    test.each(Object.entries(wrappers))(
      `if the global fetch is %s, patched ${when} the client was created, it proves nothing`,
      async (_what, wrapper) => {
        expect(await patched(wrapper, when)).toBe(false)
      },
    )
  }

  test("the caller's fetch proves nothing, even if it is the same function", async () => {
    expect(unsentOf(await attempt(await refusing(), {}, { transport: kyTransport(original) }))).toBe(false)
  })

  test("Node's fetch is proof if it was never patched, or is no longer", async () => {
    expect(await patched(original, 'before')).toBe('unreachable')
  })
})

describe('whether a request may be sent more than once', () => {
  const original = globalThis.fetch

  test("Node's own fetch sends a request once", async () => {
    const transport = kyTransport()
    await attempt(await refusing(), {}, { transport })
    expect(transport.sendsOnce?.()).toBe(true)
  })

  test("the caller's fetch and a patched fetch may repeat a request", async () => {
    expect(kyTransport(original).sendsOnce?.()).toBe(undefined)
    onTestFinished(() => void vi.unstubAllGlobals())
    for (const patch of [original.bind(globalThis), ((...args) => original(...args)) as typeof fetch]) {
      vi.unstubAllGlobals()
      const transport = kyTransport()
      vi.stubGlobal('fetch', patch)
      await attempt(await refusing(), {}, { transport })
      expect(transport.sendsOnce?.()).toBe(false)
      expect(kyTransport().sendsOnce?.()).toBe(false)
    }
  })

  test('a service worker that controls the page may repeat a request', () => {
    onTestFinished(() => void vi.unstubAllGlobals())
    vi.stubGlobal('navigator', { serviceWorker: { controller: {} } })
    expect(kyTransport().sendsOnce?.()).toBe(false)
    vi.stubGlobal('navigator', { serviceWorker: { controller: null } })
    expect(kyTransport().sendsOnce?.()).toBe(true)
  })
})

describe('a dispatcher that is not the one that Node came with never proves that nothing was sent', () => {
  type Agent = { dispatch(...args: unknown[]): unknown }
  type Slots = Record<symbol, unknown>
  const slots = globalThis as unknown as Slots
  const generations = [1, 2].map((generation) => Symbol.for(`undici.globalDispatcher.${generation}`))

  /** The current dispatcher, and a function that replaces it until the test ends. */
  async function current() {
    // Node loads its fetch and the dispatcher on first use.
    await attempt(await refusing())
    const before = generations.map((name) => slots[name])
    const put = (values: unknown[]): void => {
      for (const [index, name] of generations.entries()) slots[name] = values[index]
    }
    onTestFinished(() => put(before))
    return { agent: (before[1] ?? before[0]) as Agent, put }
  }
  const ask = async (): Promise<unknown> => unsentOf(await attempt(await refusing()))

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
    'of another class': (agent) =>
      new (class RetryAgent {
        dispatch(...args: unknown[]): unknown {
          return agent.dispatch(...args)
        }
      })(),
    'of another class of the same name': (agent) =>
      new (class Agent {
        dispatch(...args: unknown[]): unknown {
          return agent.dispatch(...args)
        }
      })(),
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

  test.each(Object.entries(foreign))("a dispatcher is not taken for Node's own: %s", async (_, make) => {
    const { agent, put } = await current()
    const dispatcher = make(agent)
    put([dispatcher, dispatcher])
    expect(await ask()).toBe(false)
  })

  test('a dispatcher in only one of the places proves nothing', async () => {
    const { agent, put } = await current()
    const other = { dispatch: (...args: unknown[]) => agent.dispatch(...args) }
    put([other, agent])
    expect(await ask()).toBe(false)
    put([agent, other])
    expect(await ask()).toBe(false)
  })

  test("a subclass of Node's own Agent with the same name proves nothing", async () => {
    const { agent, put } = await current()
    const Base = agent.constructor as new () => Agent
    const subclass = new (class Agent extends Base {
      override dispatch(...args: unknown[]): unknown {
        return super.dispatch(...args)
      }
    })()
    put([subclass, subclass])
    expect(await ask()).toBe(false)
  })

  test.each([0, 1])("a patched method on prototype %i of Node's own Agent proves nothing", async (steps) => {
    const { agent } = await current()
    let prototype: Agent = Object.getPrototypeOf(agent)
    for (let step = 0; step < steps; step++) prototype = Object.getPrototypeOf(prototype)
    const [key] = steps === 0 ? Object.getOwnPropertySymbols(prototype).filter(isDispatch) : ['dispatch']
    if (key === undefined) throw new Error('no method')
    const slot = prototype as unknown as Record<PropertyKey, (...args: unknown[]) => unknown>
    const method = slot[key]
    if (method === undefined) throw new Error('no method')
    onTestFinished(() => {
      slot[key] = method
    })
    slot[key] = function (this: unknown, ...args) {
      return Reflect.apply(method, this, args)
    }
    expect(await ask()).toBe(false)
  })

  test.each<[string, (undici: Undici) => Dispatcher]>([
    ['made by the package undici', ({ Agent }) => new Agent()],
    ['of the same package that retries', (undici) => new undici.Agent().compose(undici.interceptors.retry())],
  ])('a global dispatcher %s proves nothing', async (_what, make) => {
    await current()
    const undici = await import('undici')
    undici.setGlobalDispatcher(make(undici))
    expect(await ask()).toBe(false)
    expect(kyTransport().sendsOnce?.()).toBe(false)
  })
})

type Undici = typeof import('undici')

const isDispatch = ({ description }: symbol): boolean => description === 'dispatch'
