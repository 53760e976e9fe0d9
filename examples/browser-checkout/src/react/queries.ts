/** What the shop reads, and the one mutation that orders. Knows no page. */
import { QueryClient, useMutation, useQuery } from '@tanstack/react-query'
import type { CreateOrderRequest } from 'customer-ordering-sdk'
import { Checkout, type Ending } from '../checkout.ts'
import { concludeDraft, draftReference } from '../draft.ts'
import { client } from '../shop-client.ts'

const checkout = new Checkout(client)

export const queryClient = new QueryClient({
  defaultOptions: {
    // The client repeats requests itself.
    queries: { retry: false },
    mutations: {
      retry: false,
      // By default TanStack Query holds a mutation back while the browser is offline, and sends it when nobody waits any more.
      networkMode: 'always',
    },
  },
})

export const useServices = () =>
  useQuery({
    queryKey: ['services'],
    queryFn: ({ signal }) => client.services.list({ limit: 50 }, { signal }).toArray({ max: 200 }),
  })

export const useBalance = () =>
  useQuery({ queryKey: ['balance'], queryFn: ({ signal }) => client.balance.retrieve({ signal }) })

const STANDING = ['standing']
/** Milliseconds between two questions about an order whose outcome is not known. */
const AGAIN = 2_000

/** How the order with this page's reference stands; null if it may be placed. Settles what an earlier page left open. */
export const useStanding = () =>
  useQuery({
    queryKey: STANDING,
    // Without the query's signal: a page that goes away has not cancelled an order.
    queryFn: async (): Promise<Ending | null> => {
      const reference = (await checkout.findOpen()) ?? draftReference()
      let known: Ending | undefined
      for await (const settled of checkout.settle())
        if (settled.reference === reference) known = settled.ending
      if (known?.state === 'placed') void queryClient.invalidateQueries({ queryKey: ['balance'] })
      return known ?? (await checkout.find(reference)) ?? null
    },
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: ({ state }) => (state.data?.state === 'checking' ? AGAIN : false),
  })

/** Places the order. Its retry is `create()`'s own, with the same key: `mutate` again is the same order, too. */
export const usePlaceOrder = () =>
  useMutation({
    mutationFn: (request: Omit<CreateOrderRequest, 'metadata'>) =>
      checkout.place({ ...request, metadata: { externalOrderId: draftReference() } }),
    onSuccess: (ending) => {
      queryClient.setQueryData(STANDING, ending)
      void queryClient.invalidateQueries({ queryKey: ['balance'] })
    },
  })

/** To be called when the person has seen how the order ended: the next one is another. */
export function orderSomethingElse(): void {
  concludeDraft(draftReference())
  queryClient.setQueryData(STANDING, null)
}
