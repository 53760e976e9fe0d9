/** Kills workerd while its workers place orders, starts it again on the same disk, and settles. */

import { rmSync } from 'node:fs'
import { serveSandbox } from '../../../src/sandbox/http/server.ts'
import { createSandbox } from '../../../src/sandbox/index.ts'
import { seeded } from '../../../src/stores/contract/seeded.ts'
import type { Place, StoreKind, Task } from './platform.ts'
import { temporaryFolder, Workerd } from './workerd.ts'

export interface KillRound {
  readonly acknowledged: number
  readonly charges: number
  readonly interrupted: number
  /** What the client promised and did not keep. */
  readonly broken: readonly string[]
}

const ORDERS = 12
/** Every order is placed by both workers, or twice through its object. */
const CALLS = 2

const orderIdOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

/** @param lose loses the disk with the process, to prove that the round detects it */
export async function killRound(store: StoreKind, seed: number, lose = false): Promise<KillRound> {
  const random = seeded(seed)
  const sandbox = createSandbox()
  const references = Array.from({ length: ORDERS }, (_, index) => `order-${seed}-${index + 1}`)
  const place: Place = { store, name: `shop-${seed}` }
  const { folder, remove } = temporaryFolder()
  // A request that arrives, its response, or a result of one of the two calls.
  const killAt = lose ? 3 * ORDERS : random(4 * ORDERS)
  let steps = 0
  let reached = (): void => {}
  const moment = new Promise<void>((resolve) => (reached = resolve))
  const step = (): void => {
    if (steps++ === killAt) reached()
  }
  const handle: typeof sandbox.handle = (request) => {
    step()
    const handled = sandbox.handle(request)
    void handled.then(step)
    return handled
  }
  const service = await serveSandbox({ ...sandbox, handle })
  const start = () => Workerd.start({ folder, baseUrl: service.url, apiKey: sandbox.apiKey })
  const acknowledged = new Map<string, string>()
  const broken: string[] = []
  const create = async (
    workerd: Workerd,
    reference: string,
    worker: 'one' | 'two',
  ): Promise<string | undefined> => {
    const task: Task = { task: 'create', reference }
    const id = orderIdOf(await workerd.perform(place, task, worker).catch(() => undefined))
    const before = acknowledged.get(reference)
    if (id !== undefined && before !== undefined && before !== id)
      broken.push(`${reference} was returned as ${before} and as ${id}`)
    if (id !== undefined) acknowledged.set(reference, id)
    step()
    return id
  }
  try {
    const killed = await start()
    const calls = references.flatMap((reference) =>
      (['one', 'two'] as const).slice(0, CALLS).map((worker) => create(killed, reference, worker)),
    )
    await Promise.race([moment, Promise.all(calls)])
    await killed.kill()
    await Promise.all(calls)
    const known = new Map(acknowledged)
    if (lose) rmSync(folder, { recursive: true })

    const next = await start()
    try {
      // An acknowledged order is remembered: it is returned without a request.
      for (const [reference, id] of known) {
        const sent = sandbox.requests.length
        const again = await create(next, reference, 'two')
        if (again !== id) broken.push(`${reference} was acknowledged as ${id} and is now ${again}`)
        if (sandbox.requests.length !== sent) broken.push(`${reference} was acknowledged and sent again`)
      }
      await next.perform(place, { task: 'recover' })
      for (const reference of references) {
        const id = (await create(next, reference, 'one')) ?? (await create(next, reference, 'two'))
        if (id === undefined) broken.push(`${reference} cannot be placed`)
      }
    } finally {
      await next.kill()
    }
    for (const reference of references) {
      const charges = sandbox.ledger.filter(({ externalOrderId }) => externalOrderId === reference)
      if (charges.length !== 1) broken.push(`${reference} was charged ${charges.length} times`)
      if (charges[0]?.orderId !== acknowledged.get(reference))
        broken.push(`${reference} was charged as another order than it was returned`)
    }
    return {
      acknowledged: known.size,
      charges: sandbox.ledger.length,
      interrupted: references.length - known.size,
      broken,
    }
  } finally {
    await service.close()
    remove()
  }
}
