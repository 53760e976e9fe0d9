import { Session } from 'node:inspector/promises'
import { CustomerOrderingClient } from '../src/index.ts'
import { createSandbox } from '../src/sandbox/index.ts'

const SOURCE = new URL('../src/', import.meta.url).href

/**
 * The files of src that a call of `create()` uses: those with a function that V8 counted as run
 * during the call. Excludes the sandbox and its random numbers, which stand in for the service.
 */
export async function filesOfCreate(): Promise<readonly string[]> {
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
  return result
    .filter(({ functions }) => functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0))
    .filter(({ url }) => url.startsWith(SOURCE))
    .map(({ url }) => url.slice(SOURCE.length))
    .filter((file) => !file.startsWith('sandbox/'))
    .sort()
}
