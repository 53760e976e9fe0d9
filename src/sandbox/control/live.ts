import type { ServerResponse } from 'node:http'
import type { Sandbox } from '../sandbox.ts'
import type { SandboxRequest } from '../service/reply.ts'
import { type Overview, overviewOf, withShortBodies } from './overview.ts'

/** All that the live page shows. */
export interface LiveEvent {
  readonly overview: Overview
  /** The newest requests, oldest first. */
  readonly requests: readonly SandboxRequest[]
}

export interface LiveEvents {
  attach(response: ServerResponse): void
  changed(): void
}

const MAX_REQUESTS = 200
const UPDATE_INTERVAL_MS = 100
const HEARTBEAT_MS = 15_000
/** A page with more unread bytes gets no events, so that a frozen tab cannot exhaust the server's memory. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024

export function createLiveEvents(sandbox: Sandbox, now: () => number = Date.now): LiveEvents {
  const pages = new Set<ServerResponse>()
  let timer: NodeJS.Timeout | undefined
  let heartbeat: NodeJS.Timeout | undefined

  const event = (): string => {
    const requests = sandbox.requests.slice(-MAX_REQUESTS).map(withShortBodies)
    const data: LiveEvent = { overview: overviewOf(sandbox, now()), requests }
    return `data: ${JSON.stringify(data)}\n\n`
  }
  const send = (): void => {
    timer = undefined
    const text = event()
    for (const page of pages) if (page.writableLength <= MAX_UNREAD_BYTES) page.write(text)
  }

  return {
    changed() {
      if (pages.size === 0 || timer !== undefined) return
      timer = setTimeout(send, UPDATE_INTERVAL_MS).unref()
    },
    attach(response) {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
      response.write(`retry: 1000\n\n${event()}`)
      if (pages.size === 0)
        heartbeat = setInterval(() => {
          for (const page of pages) page.write(': still here\n\n')
        }, HEARTBEAT_MS).unref()
      pages.add(response)
      response.on('close', () => {
        pages.delete(response)
        if (pages.size === 0) clearInterval(heartbeat)
      })
    },
  }
}
