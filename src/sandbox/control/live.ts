import type { ServerResponse } from 'node:http'
import type { Sandbox } from '../sandbox.ts'
import type { SandboxRequest } from '../service/reply.ts'
import { type Overview, overviewOf, withShortBodies } from './overview.ts'

export interface LiveEvent {
  readonly overview: Overview
  /**
   * Oldest first.
   *
   * A `snapshot` event contains the newest requests. An `update` event contains the requests that
   * began or ended since the previous event.
   */
  readonly requests: readonly SandboxRequest[]
}

export interface LiveEvents {
  attach(response: ServerResponse): void
  changed(): void
  /** Call after a reset or a loaded state: every page then gets a new snapshot. */
  restarted(): void
}

const MAX_REQUESTS = 200
const UPDATE_INTERVAL_MS = 100
const HEARTBEAT_MS = 15_000
/**
 * A page with more unread bytes gets no updates, so that a frozen tab cannot exhaust the server's
 * memory.
 */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024

export function createLiveEvents(sandbox: Sandbox, now: () => number = Date.now): LiveEvents {
  const pages = new Map<ServerResponse, { missedUpdate: boolean }>()
  let timer: NodeJS.Timeout | undefined
  let heartbeat: NodeJS.Timeout | undefined
  let newestSent = 0
  let shownAsRunning: readonly SandboxRequest[] = []

  const event = (name: string, requests: readonly SandboxRequest[]): string => {
    const data: LiveEvent = { overview: overviewOf(sandbox, now()), requests: requests.map(withShortBodies) }
    return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
  }
  const snapshot = (): string => event('snapshot', sandbox.requests.slice(-MAX_REQUESTS))
  const newRequests = (): readonly SandboxRequest[] => {
    const { requests } = sandbox
    const fresh: SandboxRequest[] = []
    for (let i = requests.length - 1; i >= 0 && fresh.length < MAX_REQUESTS; i--) {
      const request = requests[i]
      if (request === undefined || request.number <= newestSent) break
      fresh.unshift(request)
    }
    return fresh
  }
  const send = (): void => {
    timer = undefined
    if (pages.size === 0) return
    const fresh = newRequests()
    const ended = shownAsRunning.filter(({ status }) => status !== 'running')
    shownAsRunning = [...shownAsRunning, ...fresh].filter(({ status }) => status === 'running')
    newestSent = fresh.at(-1)?.number ?? newestSent
    const update = event('update', [...ended, ...fresh])
    for (const [response, page] of pages) {
      if (response.writableLength > MAX_UNREAD_BYTES) page.missedUpdate = true
      else {
        response.write(page.missedUpdate ? snapshot() : update)
        page.missedUpdate = false
      }
    }
  }

  const changed = (): void => {
    if (pages.size === 0 || timer !== undefined) return
    timer = setTimeout(send, UPDATE_INTERVAL_MS).unref()
  }

  return {
    changed,
    attach(response) {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
      response.write(`retry: 1000\n\n${snapshot()}`)
      if (pages.size === 0) {
        // The snapshot contains these requests, so the first update must omit them.
        newestSent = sandbox.requests.at(-1)?.number ?? 0
        shownAsRunning = sandbox.requests.filter(({ status }) => status === 'running')
        heartbeat = setInterval(() => {
          for (const page of pages.keys()) page.write(': still here\n\n')
        }, HEARTBEAT_MS).unref()
      }
      pages.set(response, { missedUpdate: false })
      response.on('close', () => {
        pages.delete(response)
        if (pages.size === 0) clearInterval(heartbeat)
      })
    },
    restarted() {
      newestSent = 0
      shownAsRunning = []
      for (const page of pages.values()) page.missedUpdate = true
      changed()
    },
  }
}
