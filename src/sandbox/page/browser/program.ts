import type { Overview } from '../../control/overview.ts'
import { act } from './control.ts'
import { byId } from './elements.ts'

let latest: Overview | undefined

export function noteOverview(overview: Overview): void {
  latest = overview
}

function orderingKey(): string {
  const apiKey = latest?.apiKeys.find(
    ({ permissions, revoked }) => !revoked && permissions.includes('orders:write'),
  )
  if (apiKey === undefined)
    throw new Error(
      'No active API key has the permission orders:write. Add such a key, or reset the sandbox.',
    )
  return apiKey.secret
}

async function placeOrder(): Promise<void> {
  const service = latest?.services.find(({ published, stock }) => published && stock !== 0)
  if (service === undefined)
    throw new Error('No service is published and in stock. Add such a service, or reset the sandbox.')
  const apiKey = orderingKey()
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

function copyOnClick(id: string, make: () => string): void {
  const button = byId(id)
  const name = button.textContent
  button.addEventListener('click', () =>
    act(async () => {
      await navigator.clipboard.writeText(make())
      button.textContent = 'Copied'
      setTimeout(() => {
        button.textContent = name
      }, 1500)
    }),
  )
}

export function makeProgramButtons(): void {
  copyOnClick('copy-address', () => location.origin)
  copyOnClick('copy-key', orderingKey)
  copyOnClick('copy-env', () => {
    const address = `export CUSTOMER_ORDERING_BASE_URL=${location.origin}`
    return `${address}\nexport CUSTOMER_ORDERING_API_KEY=${orderingKey()}\n`
  })
  byId('place').addEventListener('click', () => act(placeOrder))
}
