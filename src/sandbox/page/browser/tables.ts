import type { Overview } from '../../control/overview.ts'
import { badge, code, money, time } from './cells.ts'
import { element } from './elements.ts'
import { drawTable } from './table.ts'

const replays = {
  running: ['info', 'still in progress'],
  died: ['warn', 'still in progress, or a new attempt: the request died'],
  order: ['good', 'the same order'],
  refusal: ['warn', 'the same refusal'],
  fault: ['bad', 'the same server error'],
  free: ['warn', 'a new attempt, after a refusal'],
} as const

export function drawTables({ orders, ledger, keys, apiKeys, services }: Overview): void {
  drawTable('orders', {
    columns: ['Order', 'Status', 'Service', 'Quantity', 'Amount', 'Reference', 'Customer', 'Created'],
    items: orders.newest,
    total: orders.total,
    keyOf: ({ id }) => id,
    cellsOf: (order) => [
      code(order.id),
      badge('info', order.status ?? ''),
      code(order.serviceId),
      String(order.quantity),
      money(order.amount, order.currency),
      typeof order.metadata?.['externalOrderId'] === 'string' ? code(order.metadata['externalOrderId']) : '',
      code(order.customerId),
      time(order.createdAt),
    ],
  })
  drawTable('ledger', {
    columns: ['Order', 'Amount', 'Reference', 'Idempotency-Key', 'Customer', 'Time'],
    items: ledger.newest,
    total: ledger.total,
    keyOf: ({ orderId }) => orderId,
    cellsOf: (charge) => [
      code(charge.orderId),
      money(charge.amount, charge.currency),
      charge.externalOrderId === undefined ? '' : code(charge.externalOrderId),
      code(charge.idempotencyKey),
      code(charge.customerId),
      time(charge.at),
    ],
  })
  drawTable('keys', {
    columns: ['Key', 'Repeat gets', 'Belongs to', 'Since'],
    items: keys.newest,
    total: keys.total,
    keyOf: ({ scope, key }) => JSON.stringify([scope, key]),
    cellsOf: (row) => [
      code(row.key),
      badge(replays[row.answer][0], replays[row.answer][1]),
      code(row.scope),
      time(row.startedAt),
    ],
  })
  drawTable('api-keys', {
    columns: ['Name', 'Key', 'Customer', 'Permissions', 'Source system'],
    items: apiKeys,
    total: apiKeys.length,
    keyOf: ({ id }) => id,
    cellsOf: ({ id, customerId, permissions, revoked, secret, sourceSystem }) => {
      const key = element('span', {}, code(secret))
      if (revoked) key.append(' ', badge('bad', 'revoked'))
      return [code(id), key, code(customerId), permissions.join(', '), sourceSystem ?? '']
    },
  })
  drawTable('services', {
    columns: ['Service', 'Price', 'Quantities', 'Stock'],
    items: services,
    total: services.length,
    keyOf: ({ productId }) => productId,
    cellsOf: (service) => [
      code(service.productId),
      money(service.amount, service.currency),
      `${service.minQuantity} to ${service.maxQuantity}, step ${service.stepQuantity}`,
      service.published
        ? service.stock === null
          ? 'any number'
          : String(service.stock)
        : badge('warn', 'not published'),
    ],
  })
}
