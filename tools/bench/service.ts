import { fork } from 'node:child_process'
import { once } from 'node:events'

/** The order that every path of a single order returns. */
export const ITEM_ID = 'ord_0000000001'

/** A server in a separate process. */
export interface Service {
  readonly url: string
  close(): void
}

/** Starts the server with the given latency in milliseconds and number of orders. */
export async function startService(latency: number, total: number): Promise<Service> {
  const child = fork(new URL('server.ts', import.meta.url), [String(latency), String(total)])
  const [port] = await once(child, 'message')
  return { url: `http://127.0.0.1:${port}`, close: () => child.disconnect() }
}
