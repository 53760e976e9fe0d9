/** The service of a round, with a log of its responses. */
import { createSandbox, type Sandbox, type SandboxOptions } from '../../../src/sandbox/index.ts'
import { machineTime } from './events.ts'
import type { Answered } from './history.ts'

export interface Watched {
  readonly sandbox: Sandbox
  readonly served: Sandbox
  /** The time and kind of each response, by the request's number. */
  readonly answers: Map<number, Answered>
  /** Called when a request arrives and when it gets its response. */
  readonly observers: Set<() => void>
}

/** @param options of the sandbox, whose clock all processes share */
export function watchedSandbox(options: SandboxOptions): Watched {
  const answers = new Map<number, Answered>()
  const sandbox = createSandbox({ ...options, now: machineTime })
  const observers = new Set<() => void>()
  const handle: Sandbox['handle'] = async (request) => {
    const handled = sandbox.handle(request)
    for (const observe of observers) observe()
    const reply = await handled
    const { status, headers, body, delivery } = reply
    if (delivery.type === 'complete' || delivery.type === 'cut') {
      const code = /"code":"(\w+)"/.exec(body)?.[1]
      answers.set(reply.request.number, {
        at: machineTime(),
        status,
        requestId: headers['x-request-id'] ?? '',
        whole: delivery.type === 'complete',
        ...(code === undefined ? {} : { code }),
      })
    }
    for (const observe of observers) observe()
    return reply
  }
  const served: Sandbox = Object.assign(Object.create(sandbox), { handle })
  return { sandbox, served, answers, observers }
}
