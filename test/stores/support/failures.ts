/** Checks of failed store calls, and of orders with a failing store. */
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { createSandbox, type Sandbox } from 'customer-ordering-sdk/sandbox'
import { expect } from 'vitest'
import { StoreError } from '../../../src/errors/classes.ts'
import { EVERYTHING, makeRow, nextVersion, SCOPE } from '../../../src/stores/contract/rows.ts'
import type { OrderStore } from '../../../src/stores/store.ts'
import { anonymousOrder, order } from '../../support/lab.ts'

type Call = () => Promise<unknown>

/** The error that a function throws, or with which its promise rejects. It must be a StoreError. */
export async function failureOf(action: () => unknown): Promise<StoreError> {
  try {
    await action()
  } catch (error) {
    if (error instanceof StoreError) return error
    throw error
  }
  throw new Error('it did not fail')
}

export const codeOf = ({ cause }: StoreError): unknown =>
  cause instanceof Error ? Reflect.get(cause, 'code') : undefined

/**
 * Fails unless the call fails with this text in its message, and with a cause that has this code of
 * the database and else only a name: a driver's message may contain secrets. Returns the error.
 */
export async function expectFailure(
  action: () => unknown,
  message: string | RegExp,
  code?: unknown,
): Promise<StoreError> {
  const error = await failureOf(action)
  expect(error.message).toMatch(message)
  if (code === undefined) return error
  expect(codeOf(error)).toBe(code)
  expect(error.cause).toMatchObject({ name: expect.stringMatching(/error/i), message: code })
  const kept = Object.getOwnPropertyNames(error.cause)
  expect(['code', 'message', 'name', 'stack']).toEqual(expect.arrayContaining(kept))
  return error
}

/** Every read call. Those that read one row read row 1. */
export const readsOf = (store: OrderStore): readonly Call[] => [
  () => store.get(SCOPE, makeRow(1).id),
  () => store.listOpen(SCOPE, { limit: 1 }),
  () => store.list(SCOPE, { limit: 1 }),
]

/** Every write call. Row 2 is new, and row 1 has its first version. */
export const writesOf = (store: OrderStore): readonly Call[] => [
  () => store.insert(makeRow(2)),
  () => store.update(nextVersion(makeRow(1)), 1),
  () => store.prune(SCOPE, EVERYTHING),
]

export const callsOf = (store: OrderStore): readonly Call[] => [...readsOf(store), ...writesOf(store)]

/** Fails unless each call fails with this text in its message. Returns the errors. */
export async function expectFailures(calls: readonly Call[], text: string): Promise<readonly StoreError[]> {
  const errors: StoreError[] = []
  for (const call of calls) errors.push(await failureOf(call))
  for (const { message } of errors) expect(message).toContain(text)
  return errors
}

/** A client with this store, and the sandbox that it orders from. */
export function shopOver(store: OrderStore, sandbox: Sandbox = createSandbox()) {
  const { baseUrl, apiKey, fetch } = sandbox
  return {
    sandbox,
    client: new CustomerOrderingClient({ baseUrl, apiKey, fetch, account: 'shop-eu', store }),
  }
}

/** Fails unless a new order with the store is reported as not charged, and no request is sent. */
export async function expectOrderNotSent(store: OrderStore): Promise<StoreError> {
  const { sandbox, client } = shopOver(store)
  const error = await failureOf(() => client.orders.create(anonymousOrder()))
  expect(error.charged).toBe('no')
  expect(error.message).toMatch(/^The order could not be stored\. This call sent nothing\./)
  expect(error.message).not.toContain('may have been charged')
  expect(sandbox.requests).toEqual([])
  await client.close()
  return error
}

/**
 * Buys an order, lets the store's server become a copy without that order, and fails unless every
 * command of the client refuses to believe the copy.
 */
export async function expectLaggingCopyIsNotBelieved(
  store: OrderStore,
  moveToCopy: () => Promise<unknown>,
): Promise<void> {
  const { sandbox, client } = shopOver(store)
  await client.orders.create(order('paid'))
  await moveToCopy()
  for (const reference of ['paid', 'new']) {
    const { charged } = await failureOf(() => client.orders.create(order(reference)))
    expect(charged).toBe('unknown')
  }
  await failureOf(() => client.orders.unresolved())
  await failureOf(() => client.orders.reconcile())
  expect(sandbox.ledger.map(({ externalOrderId }) => externalOrderId)).toEqual(['paid'])
}
