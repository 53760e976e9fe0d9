import type { SandboxBehaviour } from './behaviour.ts'
import type { JsonObject } from './json.ts'
import type { Call } from './routing.ts'
import type { SandboxApiKey, SandboxOrder, SandboxPermission } from './state.ts'
import {
  type Answer,
  balanceBody,
  errorAnswer,
  jsonAnswer,
  listAnswer,
  orderBody,
  serviceBody,
} from './wire.ts'
import { findApiKey, refuseApiKey, UNAUTHORIZED, type World } from './world.ts'

export interface ListChanges {
  /** Subtracted from the limit of the page. */
  readonly fewer: number
  readonly change: ((rows: readonly JsonObject[]) => readonly JsonObject[]) | null
}

export function listOrders(world: World, call: Call, changes: ListChanges): Answer {
  return authenticated(world, call, 'orders:read', (apiKey) => {
    const { tables, behaviour } = world
    const sourceSystem = call.query.get('sourceSystem')
    const orders = [...tables.orders.values()].filter(
      (order) =>
        order.customerId === apiKey.customerId &&
        isReadable(world, order) &&
        (sourceSystem === null || order.sourceSystem === sourceSystem),
    )
    const now = world.now()
    return pageOf(world, 'orders', call.query, inOrder(world, orders), changes, (order) =>
      orderBody(order, behaviour, now),
    )
  })
}

export function retrieveOrder(world: World, call: Call): Answer {
  return authenticated(world, call, 'orders:read', (apiKey) => {
    const order = world.tables.orders.get(call.id)
    // Respond as if another customer's order did not exist.
    if (order === undefined || order.customerId !== apiKey.customerId || !isReadable(world, order))
      return notFound(world, 'ORDER_NOT_FOUND', 'Order not found.')
    return jsonAnswer(200, orderBody(order, world.behaviour, world.now()))
  })
}

export function listServices(world: World, call: Call, changes: ListChanges): Answer {
  return authenticated(world, call, 'services:read', () => {
    const published = [...world.tables.services.values()].filter((service) => service.published)
    const rows = world.behaviour.ordering === 'random' ? shuffled(world, published) : published
    return pageOf(world, 'services', call.query, rows, changes, (service) =>
      serviceBody(service, world.behaviour),
    )
  })
}

export function retrieveService(world: World, call: Call): Answer {
  return authenticated(world, call, 'services:read', () => {
    const service = world.tables.services.get(call.id)
    return service?.published === true
      ? jsonAnswer(200, serviceBody(service, world.behaviour))
      : notFound(world, 'SERVICE_NOT_FOUND', 'Service not found.')
  })
}

export function retrieveBalance(world: World, call: Call): Answer {
  return authenticated(world, call, 'balance:read', (apiKey) => {
    const wallet = world.tables.customers.get(apiKey.customerId)?.wallet
    return wallet
      ? jsonAnswer(200, balanceBody(wallet))
      : notFound(world, 'WALLET_NOT_FOUND', 'Customer wallet mapping not found.')
  })
}

function authenticated(
  world: World,
  call: Call,
  permission: SandboxPermission,
  answer: (apiKey: SandboxApiKey) => Answer,
): Answer {
  const apiKey = findApiKey(world.tables, call.authorization)
  if (apiKey === undefined) return errorAnswer(UNAUTHORIZED, world.behaviour)
  const refusal = refuseApiKey(apiKey, permission)
  return refusal === null ? answer(apiKey) : errorAnswer(refusal, world.behaviour)
}

function notFound(world: World, code: string, message: string): Answer {
  return errorAnswer({ status: 404, code, message }, world.behaviour)
}

function isReadable(world: World, order: SandboxOrder): boolean {
  return world.now() - order.createdAt >= world.behaviour.readLag
}

function inOrder(world: World, orders: readonly SandboxOrder[]): readonly SandboxOrder[] {
  switch (world.behaviour.ordering) {
    case 'oldest':
      return orders
    case 'newest':
      return orders.toReversed()
    case 'amount':
      return orders.toSorted((a, b) => a.amount - b.amount)
    case 'random':
      return shuffled(world, orders)
  }
}

function shuffled<Row>(world: World, rows: readonly Row[]): readonly Row[] {
  return rows
    .map((row) => ({ row, place: world.lists.next() }))
    .sort((a, b) => a.place - b.place)
    .map(({ row }) => row)
}

function pageOf<Row>(
  world: World,
  name: 'orders' | 'services',
  query: URLSearchParams,
  rows: readonly Row[],
  changes: ListChanges,
  show: (row: Row) => JsonObject,
): Answer {
  const { behaviour } = world
  const asked = readPaging(query, behaviour)
  if (typeof asked === 'string')
    return errorAnswer({ status: 400, code: 'INVALID_REQUEST', message: asked }, behaviour)
  const limit = Math.min(asked.limit, behaviour.maxLimit ?? Infinity)
  const offset = behaviour.ignoreOffset ? 0 : asked.offset
  const end = offset + Math.max(0, limit - changes.fewer)
  // Render all rows only if a fault changes the list: a list may be long.
  const changed = changes.change?.(rows.map(show))
  const shown = changed === undefined ? rows.slice(offset, end).map(show) : changed.slice(offset, end)
  return listAnswer(name, { rows: shown, total: (changed ?? rows).length, limit, offset }, behaviour)
}

/** With the switch `invalidPaging: 'refuse'`, returns a message for an invalid value. */
function readPaging(
  query: URLSearchParams,
  behaviour: SandboxBehaviour,
): { limit: number; offset: number } | string {
  // The default `limit` of 50 is from the API document.
  const paging = { limit: 50, offset: 0 }
  for (const name of ['limit', 'offset'] as const) {
    const given = query.get(name)
    if (given === null) continue
    const least = name === 'limit' ? 1 : 0
    const value = /^[+-]?\d+$/.test(given) ? Number(given) : Number.NaN
    const valid = Number.isSafeInteger(value) && value >= least
    if (!valid && behaviour.invalidPaging === 'refuse')
      return `${name} must be an integer from ${least} to ${Number.MAX_SAFE_INTEGER}.`
    if (!Number.isNaN(value)) paging[name] = Math.min(Math.max(value, least), Number.MAX_SAFE_INTEGER)
  }
  return paging
}
