/** Requests and orders as applications send them: undocumented fields, five keys of metadata, UUIDs as references. */

export const KEY = 'sk_test_of_a_usual_length_0001'
export const ITEM_ID = 'ord_0000000001'

const PREFIX = crypto.randomUUID().slice(0, 24)
let number = 0

/** The body of an order whose reference ends with the number. */
const bodyOf = (number: number) => ({
  serviceId: 'svc_standard',
  target: '@someone',
  quantity: 100,
  campaignCode: 'SPRING-26',
  notifyUrl: 'https://shop.example.com/hooks/orders',
  metadata: {
    externalOrderId: PREFIX + String(number).padStart(12, '0'),
    shop: 'shop-eu',
    channel: 'web',
    customer: 'cus_4711',
    cart: 'cart_0815',
  },
})

/** The body of an order, each time with another reference. */
export const orderBody = (): Body => bodyOf(++number)

type Body = ReturnType<typeof bodyOf>

/** The order for a request: ten fields. Its id ends as its reference does. */
export const placed = ({ serviceId, target, quantity, metadata }: Body) => ({
  id: `ord_${metadata.externalOrderId.slice(-10)}`,
  status: 'pending',
  amount: 1999,
  currency: 'EUR',
  serviceId,
  target,
  quantity,
  createdAt: '2026-01-01T00:00:00.000Z',
  note: 'a note of a usual length, as people write them',
  metadata,
})

/** A `fetch` that places and lists orders without a network, and keeps none of them. */
export const instantService: typeof fetch = async (input, init) => {
  // A new task, as after a network: V8 keeps the target of every WeakRef until the current task ends.
  await new Promise((resolve) => setImmediate(resolve))
  if (init?.method === 'POST') return Response.json(placed(JSON.parse(String(init.body))), { status: 201 })
  const { searchParams } = new URL(String(input))
  const offset = Number(searchParams.get('offset') ?? 0)
  const length = Math.min(Number(searchParams.get('limit') ?? 100), number - offset)
  const data = Array.from({ length }, (_, index) => placed(bodyOf(offset + index + 1)))
  return Response.json({ data, total: number })
}
