import { Session } from 'node:inspector/promises'
import { CustomerOrderingClient } from '../../src/index.ts'
import { createSandbox } from '../../src/sandbox/index.ts'

const SOURCE = new URL('../../src/', import.meta.url).href

export interface CreatePath {
  readonly files: readonly string[]
  /** Number of functions. */
  readonly functions: number
}

/**
 * The code of src that a call of `create()` uses: what V8 counted as run during the call. Excludes
 * the sandbox and its random numbers, which stand in for the service.
 */
export async function pathOfCreate(): Promise<CreatePath> {
  const { baseUrl, apiKey, fetch } = createSandbox()
  const client = new CustomerOrderingClient({ baseUrl, apiKey, account: 'shop', fetch })
  const { items } = await client.services.list()
  const service = items[0]
  if (service === undefined) throw new Error('the sandbox has no service')
  const { productId: serviceId, minQuantity: quantity } = service
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true })
  await client.orders.create({ serviceId, target: '@you', quantity, metadata: { externalOrderId: 'o1' } })
  const { result } = await session.post('Profiler.takePreciseCoverage')
  session.disconnect()
  let count = 0
  const files = result.flatMap(({ url, functions }) => {
    const file = url.slice(SOURCE.length)
    if (!url.startsWith(SOURCE) || file.startsWith('sandbox/')) return []
    const run = functions.filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0)
    count += run.length
    return run.length > 0 ? [file] : []
  })
  return { files: files.sort(), functions: count }
}
