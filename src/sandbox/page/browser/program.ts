import type { Overview } from '../../control/overview.ts'
import { act } from './control.ts'
import { copyOnClick, fieldOf } from './copy.ts'
import { byId } from './elements.ts'

let latest: Overview | undefined

export function noteOverview(overview: Overview): void {
  latest = overview
}

async function orderingKey(): Promise<string> {
  const apiKey = latest?.apiKeys.find(
    ({ permissions, revoked }) => !revoked && permissions.includes('orders:write'),
  )
  if (apiKey === undefined)
    throw new Error(
      'No active API key has the permission orders:write. Add such a key, or reset the sandbox.',
    )
  return String(await fieldOf(`/api-keys/${encodeURIComponent(apiKey.id)}`, 'secret'))
}

async function placeOrder(): Promise<void> {
  const service = latest?.services.find(({ published, stock }) => published && stock !== 0)
  if (service === undefined)
    throw new Error('No service is published and in stock. Add such a service, or reset the sandbox.')
  const apiKey = await orderingKey()
  const name = `page-${Date.now()}`
  await fetch('/v1/orders', {
    method: 'POST',
    headers: {
      authorization: `Bearer ${apiKey}`,
      'content-type': 'application/json',
      'idempotency-key': name,
    },
    body: JSON.stringify({
      serviceId: service.productId,
      target: '@ada',
      quantity: service.minQuantity,
      metadata: { externalOrderId: name },
    }),
  })
    // Ignore a lost response, which a fault rule may have caused: the log shows the request.
    .catch(() => {})
}

export function makeProgramButtons(): void {
  copyOnClick(byId('copy-address'), async () => location.origin)
  copyOnClick(byId('copy-key'), orderingKey)
  copyOnClick(byId('copy-env'), async () => {
    const apiKey = await orderingKey()
    return `export CUSTOMER_ORDERING_BASE_URL=${location.origin}\nexport CUSTOMER_ORDERING_API_KEY=${apiKey}\n`
  })
  byId('place').addEventListener('click', () => act(placeOrder))
}
