import type { Overview } from '../../control/overview.ts'
import { act } from './control.ts'
import { copies, fieldOf } from './copy.ts'
import { byId } from './elements.ts'

/** The latest overview of the sandbox. */
let known: Overview | undefined

export function noteOverview(overview: Overview): void {
  known = overview
}

/** Returns the secret of an API key that may place orders. */
async function orderingKey(): Promise<string> {
  const apiKey = known?.apiKeys.find(
    ({ permissions, revoked }) => !revoked && permissions.includes('orders:write'),
  )
  if (apiKey === undefined) throw new Error('There is no API key that may place orders.')
  return String(await fieldOf(`/api-keys/${encodeURIComponent(apiKey.id)}`, 'secret'))
}

async function placeOrder(): Promise<void> {
  const service = known?.services.find(({ published, stock }) => published && stock !== 0)
  if (service === undefined) throw new Error('There is no service that can be ordered.')
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
    // Ignore a lost response, which a fault may have caused: the log shows the request.
    .catch(() => {})
}

/** Sets up the buttons that help to develop a program against this sandbox. */
export function makeProgramButtons(): void {
  copies(byId('copy-address'), async () => location.origin)
  copies(byId('copy-key'), orderingKey)
  copies(
    byId('copy-env'),
    async () =>
      `export CUSTOMER_ORDERING_BASE_URL=${location.origin}\nexport CUSTOMER_ORDERING_API_KEY=${await orderingKey()}\n`,
  )
  byId('place').addEventListener('click', () => act(placeOrder))
}
