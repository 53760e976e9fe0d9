/** The service of a round, with all that it answered. */
import { createSandbox, type Sandbox, type SandboxOptions } from '../../../src/sandbox/index.ts'
import { machineTime } from './events.ts'
import type { Arrival } from './history.ts'

/** A sandbox that is watched. */
export interface Watched {
  readonly sandbox: Sandbox
  /** What the server serves. */
  readonly served: Sandbox
  /** When and how it answered each request, by the request's number. */
  readonly answers: Map<number, NonNullable<Arrival['answer']>>
  /** Called when a request has come, and when it is answered. */
  readonly observers: Set<() => void>
}

/** @param options of the sandbox; its clock is everybody's */
export function watchedSandbox(options: SandboxOptions): Watched {
  const answers = new Map<number, NonNullable<Arrival['answer']>>()
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
  const served: Sandbox = { ...sandbox, handle }
  return { sandbox, served, answers, observers }
}
