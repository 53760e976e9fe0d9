/** Places an order whose first response is lost, and shows that the wallet is charged once. */
import { CustomerOrderingClient } from '../client.ts'
import { formatAmount } from '../money.ts'

interface Quickstart {
  readonly baseUrl: string
  readonly apiKey: string
  out(text: string): void
}

export async function quickstart({ baseUrl, apiKey, out }: Quickstart): Promise<void> {
  const client = new CustomerOrderingClient({
    baseUrl,
    apiKey,
    account: 'quickstart',
    // Keys are computed from this label, so that they are the same in every run.
    server: 'sandbox',
    hooks: {
      onRequest: ({ method, path, idempotencyKey }) => {
        if (method === 'POST') out(`  -> ${method} ${path}, Idempotency-Key ${idempotencyKey}\n`)
      },
      onResponse: ({ method, status, outcome }) => {
        if (method === 'POST') out(`  <- ${status ?? `no response: connection ${outcome}`}\n`)
      },
    },
  })
  const request = {
    serviceId: 'svc_standard',
    target: '@ada',
    quantity: 2,
    metadata: { externalOrderId: 'invoice-1001' },
  }
  const before = await client.balance.retrieve()
  const money = (amount: number): string => formatAmount({ ...before, amount }, 'en')
  out(`A sandbox of the service at ${baseUrl}, with ${money(before.amount)} in the wallet\n`)
  out('\nAn order whose first response is lost, after the wallet was charged\n')
  const order = await client.orders.create(request)
  out(`  order ${order.id}, ${order.status}, ${money(order.amount)}\n`)
  out('\nThe same call again: the client remembers the order, and sends nothing\n')
  const again = await client.orders.create(request)
  out(`  order ${again.id}\n`)
  const after = await client.balance.retrieve()
  await client.close()
  out(`\nBalance ${money(after.amount)}: charged ${money(before.amount - after.amount)}, once\n`)
  out('\nNext: customer-ordering-sdk sandbox serves this sandbox for your own program.\n')
}
