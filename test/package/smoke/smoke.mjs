/**
 * The steps that every runtime and every bundle must pass, against a sandbox over HTTP that acts on
 * prefixes of references: `lost-` is charged and its first response is lost, `silent-` never gets a
 * response. Plain JavaScript without platform modules.
 */

/**
 * @param {typeof import('customer-ordering-sdk')} sdk the package, loaded in any way
 * @param {{ baseUrl: string, apiKey: string }} service
 * @returns {Promise<string[]>} names of the steps that passed. The first step that fails throws
 */
export async function smoke(sdk, { baseUrl, apiKey }) {
  const { CustomerOrderingClient, formatAmount, isCustomerOrderingError, responseInfo } = sdk
  const run = crypto.randomUUID()
  const account = `smoke-${run}`
  const done = []
  const expect = (truth, what) => {
    if (!truth) throw new Error(`${what}, after ${done.join(', ')}`)
  }
  let onRequest = () => {}
  const client = new CustomerOrderingClient({
    baseUrl,
    apiKey,
    account,
    hooks: { onRequest: (event) => onRequest(event) },
  })
  const request = (reference, target = `@${reference}`) => ({
    serviceId: 'svc_standard',
    target,
    quantity: 1,
    metadata: { externalOrderId: reference },
  })

  const services = await client.services.list({ limit: 2 }).toArray({ max: 100 })
  const service = await client.services.retrieve('svc_standard')
  expect(services.length > 0 && service.productId === 'svc_standard', 'the services are wrong')
  expect(formatAmount(service, 'en').length > 0, 'the amount cannot be formatted')
  done.push('services')

  const before = await client.balance.retrieve()
  const lost = await client.orders.create(request(`lost-${run}`))
  const after = await client.balance.retrieve()
  expect(before.amount - after.amount === lost.amount, 'the wallet was not charged once')
  // Deno resends a request on its own if a reused connection ends: the same key, the same body. The
  // caller reads the number of requests from the service.
  const repeats = typeof Deno === 'undefined' ? [2] : [1, 2]
  expect(repeats.includes(responseInfo(lost)?.attempts), 'the answer was not lost')
  done.push('lost response')

  const again = await client.orders.create(request(`lost-${run}`))
  expect(again.id === lost.id && responseInfo(again)?.replayed === true, 'the order was not remembered')
  done.push('remembered order')

  const placed = [lost.id]
  for (const number of [1, 2, 3]) placed.push((await client.orders.create(request(`${number}-${run}`))).id)
  const ids = new Set()
  for await (const { id } of client.orders.list({ limit: 2 })) ids.add(id)
  expect(
    placed.every((id) => ids.has(id)),
    'the list has not all orders',
  )
  expect((await client.orders.retrieve(lost.id)).id === lost.id, 'the order cannot be read')
  done.push('paging')

  const refused = await client.orders.create({ ...request(`none-${run}`), serviceId: 'none' }).catch((e) => e)
  expect(isCustomerOrderingError(refused), `not one of our errors: ${refused}`)
  expect(refused instanceof sdk.NotFoundError, `not NotFoundError but ${refused.name}`)
  expect(refused.code === 'not_found' && refused.charged === 'no', 'a refusal that charged')
  const stranger = client.withOptions({ apiKey: 'sk_nobody' })
  const unknown = await stranger.balance.retrieve().catch((e) => e)
  expect(unknown.code === 'authentication', `not an authentication error but ${unknown.name}`)
  done.push('typed error')

  const controller = new AbortController()
  onRequest = () => queueMicrotask(() => controller.abort(new Error('no longer wanted')))
  const options = { signal: controller.signal }
  const aborted = await client.orders.create(request(`silent-${run}`), options).catch((e) => e)
  onRequest = () => {}
  expect(aborted.code === 'aborted' && aborted.charged !== 'yes', `not aborted but ${aborted.name}`)
  const open = []
  for await (const record of client.orders.unresolved()) open.push(record.externalOrderId)
  expect(open.join() === `silent-${run}`, `open orders: ${open.join()}`)
  done.push('abort')

  await client.close()
  return done
}
