/** Faults that cut, delay or lose a response, through each way to reach a sandbox. */
import { sandboxHandlers } from 'customer-ordering-sdk/msw'
import {
  createSandbox,
  type FaultAction,
  type Sandbox,
  type SandboxOptions,
} from 'customer-ordering-sdk/sandbox'
import { setupServer } from 'msw/node'
import { describe, expect, onTestFinished, test } from 'vitest'
import { errorOf } from '../support/calls.ts'
import { manualClock, orderInit, until } from './caller.ts'
import { serving } from './serving.ts'

interface Way {
  readonly sandbox: Sandbox
  readonly url: string
  readonly send: typeof fetch
}

const WAYS: Readonly<Record<string, (options: SandboxOptions) => Promise<Way>>> = {
  'sandbox.fetch': async (options) => {
    const sandbox = createSandbox(options)
    return { sandbox, url: sandbox.baseUrl, send: sandbox.fetch }
  },
  'a port': async (options) => {
    const { sandbox, server } = await serving(options)
    return { sandbox, url: server.url, send: fetch }
  },
  'msw handlers': async (options) => {
    const sandbox = createSandbox(options)
    const server = setupServer(...sandboxHandlers(sandbox))
    server.listen({ onUnhandledFrame: 'error' })
    onTestFinished(() => server.close())
    return { sandbox, url: sandbox.baseUrl, send: (input, init) => fetch(input, init) }
  },
}

/** The cause of a lost connection. msw reports none. */
const causeOf = (way: string, type: FaultAction['type']): object | undefined => {
  if (way === 'msw handlers') return undefined
  return way === 'sandbox.fetch' && type === 'refuseConnection'
    ? { name: 'Error', code: 'ECONNREFUSED', syscall: 'connect' }
    : { name: 'Error', code: 'ECONNRESET', syscall: 'read' }
}

/** The reason of every abort. */
const reason = new Error('enough')

describe.each(Object.keys(WAYS))('faults through %s', (way) => {
  async function withFault(action: FaultAction, options: SandboxOptions = {}) {
    const { sandbox, url, send } =
      (await WAYS[way]?.({ ...options, faults: [{ action }] })) ?? expect.unreachable()
    const controller = new AbortController()
    const order = () => send(`${url}/v1/orders`, { ...orderInit(sandbox.apiKey), signal: controller.signal })
    return { sandbox, order, abort: () => controller.abort(reason) }
  }

  test.each([
    ['refuseConnection', 0],
    ['drop', 0],
    ['commitThenDrop', 1],
    ['crash', 0],
  ] as const)('%s fails like a network, and charges %s', async (type, charges) => {
    const { sandbox, order } = await withFault({ type })
    const error = await errorOf(order())
    expect(error).toBeInstanceOf(TypeError)
    const cause = causeOf(way, type)
    if (cause !== undefined) expect(error).toMatchObject({ message: 'fetch failed', cause })
    sandbox.expectCharges(charges)
    expect(sandbox.requests).toMatchObject([{ status: 'dropped', charged: charges === 1 }])
    expect((await order()).status).toBe(201)
    sandbox.expectChargedOnce('k')
  })

  test('cutBody truncates the body halfway, after the charge', async () => {
    const { sandbox, order } = await withFault({ type: 'cutBody' })
    const response = await order()
    expect(response.status).toBe(201)
    const error = await errorOf(response.text())
    if (way !== 'msw handlers')
      expect(error).toMatchObject({ message: 'terminated', cause: { code: 'UND_ERR_SOCKET' } })
    sandbox.expectChargedOnce('k')
  })

  test('cutBody delivers the bytes before the cut', async () => {
    const { order } = await withFault({ type: 'cutBody', after: 7 })
    const reader = (await order()).body?.getReader()
    expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('{"id":"')
    await expect(reader?.read()).rejects.toThrow(way === 'msw handlers' ? undefined : 'terminated')
  })

  test('cutBody can end cleanly: fetch reads a complete text that is broken JSON', async () => {
    const { order } = await withFault({ type: 'cutBody', after: 7, cleanly: true })
    const response = await order()
    expect(response.headers.get('content-length')).toBeNull()
    expect(await response.text()).toBe('{"id":"')
  })

  test('cutBody can withhold the complete body', async () => {
    const { order } = await withFault({ type: 'cutBody', after: 0 })
    await expect(order().then((response) => response.text())).rejects.toThrow()
  })

  test.each([true, false])('stall never responds, commit %s, and ends with the signal', async (commit) => {
    const { sandbox, order, abort } = await withFault({ type: 'stall', commit })
    const lost = errorOf(order())
    await until(() => sandbox.requests[0]?.status === 'dropped')
    sandbox.expectCharges(commit ? 1 : 0)
    abort()
    expect(await lost).toBe(reason)
  })

  test('stallBody sends the headers and a part of the body, then nothing until the signal', async () => {
    const { sandbox, order, abort } = await withFault({ type: 'stallBody', after: 7 })
    const response = await order()
    expect(response.status).toBe(201)
    const reader = response.body?.getReader()
    expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('{"id":"')
    const next = reader?.read()
    abort()
    await expect(next).rejects.toBe(reason)
    sandbox.expectChargedOnce('k')
  })

  // msw does not pass this signal on.
  if (way !== 'msw handlers')
    test('stallBody notices a signal that fired between headers and body', async () => {
      const { order, abort } = await withFault({ type: 'stallBody', after: 0 })
      const response = await order()
      abort()
      await expect(response.text()).rejects.toBe(reason)
    })

  test('a late response is dropped when the caller disconnects, and stays charged', async () => {
    const clock = manualClock()
    const late: FaultAction = { type: 'delay', ms: 500, when: 'after' }
    const { sandbox, order, abort } = await withFault(late, clock.options)
    const lost = errorOf(order())
    await until(() => clock.sleepers() === 1)
    abort()
    expect(await lost).toBe(reason)
    await until(() => clock.sleepers() === 0)
    await until(() => sandbox.requests[0]?.status === 'dropped')
    sandbox.expectChargedOnce('k')
  })
})
