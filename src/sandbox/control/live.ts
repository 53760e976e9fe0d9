import type { ServerResponse } from 'node:http'
import type { Sandbox } from '../sandbox.ts'
import type { SandboxRequest } from '../service/reply.ts'
import { type Overview, overviewOf, summaryOf } from './overview.ts'

/** A server-sent event of `GET /__sandbox/events`. */
export interface LiveEvent {
  readonly overview: Overview
  /**
   * Oldest first. A `snapshot` event has the newest requests. An `update` event has the requests
   * that began or ended since the previous event.
   */
  readonly requests: readonly SandboxRequest[]
}

/** Sends changes to open pages. */
export interface LiveEvents {
  /** Sends the current state to this response, and then every change. */
  attach(response: ServerResponse): void
  /** Reports a change. Pages get changes in batches, at most ten times a second. */
  changed(): void
  /** Reports a reset or a loaded state. Every page then gets a new snapshot. */
  restarted(): void
}

/** Maximum number of requests in a snapshot, and of new requests in an update. */
const SHOWN = 200
const PAUSE = 100
const HEARTBEAT = 15_000
/**
 * A page with more unread bytes than this gets no changes. Once the page catches up, it gets a
 * snapshot.
 */
const MAX_UNREAD = 4 * 1024 * 1024

/** Watches a sandbox while pages are open. */
export function createLiveEvents(sandbox: Sandbox, now: () => number = Date.now): LiveEvents {
  /** Open pages. `behind` is true if the page has missed a change. */
  const pages = new Map<ServerResponse, { behind: boolean }>()
  let timer: NodeJS.Timeout | undefined
  let heartbeat: NodeJS.Timeout | undefined
  /** The `number` of the newest request that was sent to the pages. */
  let sent = 0
  /** Requests that the pages show as running. */
  let running: readonly SandboxRequest[] = []

  const event = (name: string, requests: readonly SandboxRequest[]): string => {
    const data: LiveEvent = { overview: overviewOf(sandbox, now()), requests: requests.map(summaryOf) }
    return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
  }
  const snapshot = (): string => event('snapshot', sandbox.requests.slice(-SHOWN))
  const newRequests = (): readonly SandboxRequest[] => {
    const { requests } = sandbox
    const fresh: SandboxRequest[] = []
    for (let i = requests.length - 1; i >= 0 && fresh.length < SHOWN; i--) {
      const request = requests[i]
      if (request === undefined || request.number <= sent) break
      fresh.unshift(request)
    }
    return fresh
  }
  const send = (): void => {
    timer = undefined
    if (pages.size === 0) return
    const fresh = newRequests()
    const ended = running.filter(({ status }) => status !== 'running')
    running = [...running, ...fresh].filter(({ status }) => status === 'running')
    sent = fresh.at(-1)?.number ?? sent
    const update = event('update', [...ended, ...fresh])
    for (const [response, page] of pages) {
      if (response.writableLength > MAX_UNREAD) page.behind = true
      else {
        response.write(page.behind ? snapshot() : update)
        page.behind = false
      }
    }
  }

  const changed = (): void => {
    if (pages.size === 0 || timer !== undefined) return
    timer = setTimeout(send, PAUSE).unref()
  }

  return {
    changed,
    attach(response) {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
      response.write(`retry: 1000\n\n${snapshot()}`)
      if (pages.size === 0) {
        // No other page is open, and the snapshot contains all changes so far: updates start here.
        sent = sandbox.requests.at(-1)?.number ?? 0
        running = sandbox.requests.filter(({ status }) => status === 'running')
        heartbeat = setInterval(() => {
          for (const page of pages.keys()) page.write(': still here\n\n')
        }, HEARTBEAT).unref()
      }
      pages.set(response, { behind: false })
      response.on('close', () => {
        pages.delete(response)
        if (pages.size === 0) clearInterval(heartbeat)
      })
    },
    restarted() {
      sent = 0
      running = []
      for (const page of pages.values()) page.behind = true
      changed()
    },
  }
}
