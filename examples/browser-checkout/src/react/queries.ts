/** The queries of the shop, and the one mutation that orders. Independent of the page. */
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
      // By default, TanStack Query delays a mutation until the browser is online, when nobody may
      // be waiting any more.
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
/** Milliseconds between two checks of an order whose outcome is not known. */
const AGAIN = 2_000

/**
 * Returns the outcome of the order with this page's reference, or null if it may be placed. Settles
 * orders that an earlier page left open.
 */
export const useStanding = () =>
  useQuery({
    queryKey: STANDING,
    // Do not pass the query's signal: closing a page does not cancel an order.
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

/**
 * Places the order. `create()` retries with the same key, and calling `mutate` again means the same
 * order.
 */
export const usePlaceOrder = () =>
  useMutation({
    mutationFn: (request: Omit<CreateOrderRequest, 'metadata'>) =>
      checkout.place({ ...request, metadata: { externalOrderId: draftReference() } }),
    onSuccess: (ending) => {
      queryClient.setQueryData(STANDING, ending)
      void queryClient.invalidateQueries({ queryKey: ['balance'] })
    },
  })

/** Call this when the person has seen the outcome: the next order gets a new reference. */
export function orderSomethingElse(): void {
  concludeDraft(draftReference())
  queryClient.setQueryData(STANDING, null)
}
