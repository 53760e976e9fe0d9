/**
 * The shop in React. It uses the same client, checkout and proxy as `main.ts`, and TanStack Query
 * for its state.
 */
import { QueryClientProvider } from '@tanstack/react-query'
import { formatAmount } from 'customer-ordering-sdk'
import { StrictMode, type SubmitEvent, useState } from 'react'
import { createRoot } from 'react-dom/client'
import type { Ending } from '../checkout.ts'
import { choicesOf } from '../quantity.ts'
import { isSoldOut, readingFailed, refusal, titleOf } from '../words.ts'
import {
  orderSomethingElse,
  queryClient,
  useBalance,
  usePlaceOrder,
  useServices,
  useStanding,
} from './queries.ts'

function Shop() {
  const balance = useBalance()
  const standing = useStanding()
  const state = standing.data?.state
  return (
    <>
      <header>
        <div className="bar">
          <p className="brand">Harbour</p>
          <p className="balance">
            Balance <strong>{balance.data ? formatAmount(balance.data, navigator.language) : '…'}</strong>
          </p>
        </div>
      </header>
      <main>
        <h1>Order services</h1>
        {standing.isError && (
          <p role="alert">
            This browser cannot store your order, so you cannot order here. Allow this site to store data.
          </p>
        )}
        {standing.data && state !== 'refused' && <Outcome ending={standing.data} />}
        {standing.isSuccess && (state === undefined || state === 'refused') && (
          <OrderForm ending={standing.data} />
        )}
      </main>
    </>
  )
}

function OrderForm({ ending }: { readonly ending: Ending | null }) {
  const services = useServices()
  const { mutate, isPending } = usePlaceOrder()
  const [serviceId, choose] = useState('')
  const [target, setTarget] = useState('')
  const [quantity, setQuantity] = useState(1)
  const chosen = services.data?.find(({ productId }) => productId === serviceId)

  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    // A disabled button would lose the focus. Pressing twice is safe: both calls have the same
    // reference.
    if (!isPending && chosen) mutate({ serviceId, target, quantity })
  }
  return (
    <form className="panel" onSubmit={submit}>
      {services.isError && <p role="alert">{readingFailed('The services')}</p>}
      <fieldset id="services" aria-busy={services.isPending} disabled={isPending}>
        <legend className="visually-hidden">Services</legend>
        {services.data?.map((service) => {
          const choices = choicesOf(service)
          return (
            <label key={service.productId} className="card">
              <input
                type="radio"
                name="service"
                checked={service.productId === serviceId}
                disabled={isSoldOut(service) || choices === undefined}
                onChange={() => {
                  choose(service.productId)
                  setQuantity(choices?.first ?? 1)
                }}
              />
              <span className="title">{titleOf(service)}</span>
              <span className="price">{formatAmount(service, navigator.language)}</span>
            </label>
          )
        })}
      </fieldset>
      <p className="field">
        <label htmlFor="target">For whom</label>
        <input
          id="target"
          required
          readOnly={isPending}
          value={target}
          onChange={(event) => setTarget(event.target.value)}
        />
      </p>
      <p className="field">
        <label htmlFor="quantity">Quantity</label>
        <input
          id="quantity"
          type="number"
          min={chosen?.minQuantity ?? 1}
          max={chosen?.maxQuantity ?? 1}
          readOnly={isPending}
          value={quantity}
          onChange={(event) => setQuantity(event.target.valueAsNumber)}
        />
      </p>
      {ending?.state === 'refused' && (
        <p className="refusal" role="alert">
          {refusal(ending.error)}
        </p>
      )}
      <button type="submit" className="primary" aria-disabled={isPending || !chosen}>
        {isPending ? 'Placing your order…' : 'Place order'}
      </button>
    </form>
  )
}

const TITLES = {
  placed: 'Order placed',
  checking: 'We are checking your order',
  attention: 'Please contact us about this order',
} as const

function Outcome({ ending }: { readonly ending: Ending }) {
  if (ending.state === 'refused') return null
  return (
    <section className="panel" role="status">
      <h2>{TITLES[ending.state]}</h2>
      {ending.state === 'placed' && <p>Order {ending.orderId}</p>}
      {ending.state === 'checking' && (
        <p>It may have been placed and charged, or not. Please do not order it again.</p>
      )}
      {ending.state === 'attention' && <p>Tell us this key: {ending.key}</p>}
      {ending.state !== 'checking' && (
        <button type="button" className="secondary" onClick={orderSomethingElse}>
          Order something else
        </button>
      )}
    </section>
  )
}

const root = document.getElementById('root')
if (root === null) throw new Error('react.html has no element with the id root')
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <Shop />
    </QueryClientProvider>
  </StrictMode>,
)
