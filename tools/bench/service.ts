import { fork } from 'node:child_process'
import { once } from 'node:events'

/** A server in a process of its own. */
export interface Service {
  readonly url: string
  close(): void
}

/** Starts the server with that latency in milliseconds. */
export async function startService(latency = 0): Promise<Service> {
  const child = fork(new URL('server.ts', import.meta.url), [String(latency)])
  const [port] = await once(child, 'message')
  return { url: `http://127.0.0.1:${port}`, close: () => child.disconnect() }
}
