import type { Balance } from '../../schemas/balance.ts'
import type { Order } from '../../schemas/order.ts'
import type { Service } from '../../schemas/service.ts'
import type { SandboxBehaviour } from './behaviour.ts'
import type { JsonObject } from './json.ts'
import type { SandboxOrder, SandboxService, SandboxWallet } from './state.ts'

export interface Answer {
  readonly status: number
  readonly contentType: string
  readonly body: unknown
  readonly headers: Readonly<Record<string, string>>
}

export interface Refusal {
  readonly status: number
  readonly code: string
  readonly message: string
}

export const IN_PROGRESS: Refusal = {
  status: 409,
  code: 'IDEMPOTENCY_IN_PROGRESS',
  message: 'A request with this Idempotency-Key is still running.',
}

export interface Page {
  readonly rows: readonly unknown[]
  /** Number of rows in the whole list. */
  readonly total: number
  readonly limit: number
  readonly offset: number
}

export function jsonAnswer(status: number, body: unknown, headers: Record<string, string> = {}): Answer {
  return { status, contentType: 'application/json', body, headers }
}

export function errorAnswer(refusal: Refusal, behaviour: SandboxBehaviour): Answer {
  const { status, code, message } = refusal
  const headers: Record<string, string> = status === 401 ? { 'www-authenticate': 'Bearer' } : {}
  switch (behaviour.errorShape) {
    case 'bare':
      return jsonAnswer(status, { code, message }, headers)
    case 'nested':
      return jsonAnswer(status, { error: { code, message } }, headers)
    case 'errors':
      return jsonAnswer(status, { errors: [{ code, message }] }, headers)
    case 'flat':
      return jsonAnswer(status, { error: code, message }, headers)
    case 'problem':
      return {
        status,
        contentType: 'application/problem+json',
        body: { type: 'about:blank', title: code, status, detail: message, code },
        headers,
      }
  }
}

export function listAnswer(name: 'orders' | 'services', page: Page, behaviour: SandboxBehaviour): Answer {
  const { rows, total, limit, offset } = page
  const hasMore = offset + rows.length < total
  switch (behaviour.listEnvelope) {
    case 'array':
      return jsonAnswer(200, rows)
    case 'data':
      return jsonAnswer(200, { data: rows })
    case 'items':
      return jsonAnswer(200, { items: rows, total, limit, offset })
    case 'named':
      return jsonAnswer(200, { [name]: rows, hasMore })
    case 'results':
      return jsonAnswer(200, { results: rows, pagination: { total, hasMore } })
  }
}

export function orderBody(order: SandboxOrder, behaviour: SandboxBehaviour, now: number): Order & JsonObject {
  const others: Record<string, unknown> = {}
  for (const field of behaviour.orderFields) {
    if (field === 'createdAt') others[field] = new Date(order.createdAt).toISOString()
    else if (order[field] !== null) others[field] = order[field]
  }
  const status = order.status ?? statusAt(behaviour, now - order.createdAt)
  return { id: order.id, status, amount: order.amount, ...others }
}

export function balanceBody({ amount, currency }: SandboxWallet): Balance {
  return { amount, currency }
}

export function serviceBody(service: SandboxService, behaviour: SandboxBehaviour): Service & JsonObject {
  const { productId, amount, currency, minQuantity, maxQuantity, stepQuantity } = service
  const { field, inStock, outOfStock } = behaviour.stockState
  const available = service.stock === null || service.stock >= minQuantity
  return {
    productId,
    amount,
    currency,
    minQuantity,
    maxQuantity,
    stepQuantity,
    [field]: available ? inStock : outOfStock,
  }
}

function statusAt(behaviour: SandboxBehaviour, age: number): string {
  let current = behaviour.statuses[0]?.status ?? 'pending'
  for (const { status, after } of behaviour.statuses) if (age >= after) current = status
  return current
}
