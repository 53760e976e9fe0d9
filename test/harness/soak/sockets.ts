/** One client over real sockets for a given time, and other clients that come and go. */
import { isCustomerOrderingError } from '../../../src/index.ts'
import { serveSandbox } from '../../../src/sandbox/http/server.ts'
import { createSandbox } from '../../../src/sandbox/index.ts'
import { Clients, forgetHistory, HOUR, type Leak } from './clients.ts'
import type { Look } from './flat.ts'

/** Fewer orders between two samples prove little, even on a slow machine. */
const LEAST = 64

/** Places orders and reads lists for the given time, and takes `count` samples. */
export async function soak(milliseconds: number, count: number, leak?: Leak): Promise<readonly Look[]> {
  const sandbox = createSandbox({ balance: 1e12, keepRequests: 10 })
  let server = await serveSandbox(sandbox, { port: 0 })
  const { signal } = new AbortController()
  // An hour passes between two rounds, while no call is running, so that the client prunes its
  // store after each.
  let hours = 0
  const runtime = {
    now: () => Date.now() + hours * HOUR,
    monotonic: () => performance.now() + hours * HOUR,
    // No wait between two attempts.
    random: () => 0,
  }
  const clients = new Clients(
    { baseUrl: server.url, apiKey: sandbox.apiKey, timeout: 2_000, maxRetries: 1 },
    runtime,
    signal,
    leak,
  )
  const looks: Look[] = []
  const began = performance.now()
  try {
    for (let part = 1; part <= count; part++) {
      const least = clients.orders + LEAST
      do await round()
      while (clients.orders < least || performance.now() - began < (milliseconds * part) / count)
      await look()
    }
  } finally {
    await clients.main.close()
    await server.close()
  }
  return looks

  async function round(): Promise<void> {
    if (hours % 8 === 0) sandbox.faults.add({ action: { type: 'commitThenDrop' } })
    if (hours % 12 === 0) sandbox.faults.add({ action: { type: 'status', status: 503 } })
    if (hours % 20 === 0) sandbox.faults.add({ action: { type: 'cutBody' } })
    const { orders, balance } = clients.main
    const calls = Array.from({ length: 7 }, () => clients.order())
    const list = orders.list({ limit: 20 }, { signal }).toArray({ max: 40 })
    const others = [clients.orderElsewhere(), list, balance.retrieve({ signal })]
    for (const ended of await Promise.allSettled([...calls, ...others]))
      if (ended.status === 'rejected' && !isCustomerOrderingError(ended.reason)) throw ended.reason
    sandbox.faults.clear()
    await clients.settle()
    hours++
    if (hours % 25 === 0) forgetHistory(sandbox)
  }

  async function look(): Promise<void> {
    // The number of connections depends on the load. Without them, all remaining resources belong
    // to someone.
    const { port } = server
    await server.close()
    for (let turns = 0; turns < 1000 && 'TCPSocketWrap' in resources(); turns++)
      await new Promise((resolve) => setImmediate(resolve))
    const left = resources()
    server = await serveSandbox(sandbox, { port })
    looks.push(await clients.look(sandbox, left))
  }
}

/** Timers, sockets and other resources that keep the process alive, by kind. */
function resources(): Readonly<Record<string, number>> {
  const found: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) found[kind] = (found[kind] ?? 0) + 1
  return found
}
