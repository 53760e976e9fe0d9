import type { Overview } from '../../control/overview.ts'
import { badge, code, money, time } from './cells.ts'
import { draw } from './elements.ts'
import { drawTable } from './table.ts'

export function drawTables({ orders, ledger, keys, services }: Overview): void {
  draw('orders', orders, () =>
    drawTable(
      'orders',
      ['Order', 'Status', 'Service', 'Quantity', 'Amount', 'Reference', 'Customer', 'Created'],
      orders.newest.map((order) => [
        code(order.id),
        badge('info', order.status ?? ''),
        code(order.serviceId),
        String(order.quantity),
        money(order.amount, order.currency),
        typeof order.metadata?.['externalOrderId'] === 'string'
          ? code(order.metadata['externalOrderId'])
          : '',
        code(order.customerId),
        time(order.createdAt),
      ]),
      orders.total,
    ),
  )
  draw('ledger', ledger, () =>
    drawTable(
      'ledger',
      ['Order', 'Amount', 'Reference', 'Idempotency-Key', 'Customer', 'Time'],
      ledger.newest.map((charge) => [
        code(charge.orderId),
        money(charge.amount, charge.currency),
        charge.externalOrderId === undefined ? '' : code(charge.externalOrderId),
        code(charge.idempotencyKey),
        code(charge.customerId),
        time(charge.at),
      ]),
      ledger.total,
    ),
  )
  const heard = {
    running: badge('info', 'still in progress'),
    died: badge('warn', 'still in progress, its request died'),
    order: badge('good', 'the order again'),
    refusal: badge('warn', 'the refusal again'),
    fault: badge('bad', 'the server error again'),
    free: badge('warn', 'nothing yet: it was refused'),
  } as const
  draw('keys', keys, () =>
    drawTable(
      'keys',
      ['Key', 'Replays as', 'Belongs to', 'Since'],
      keys.newest.map((row) => [
        code(row.key),
        heard[row.answer].cloneNode(true),
        code(row.scope),
        time(row.startedAt),
      ]),
      keys.total,
    ),
  )
  draw('services', services, () =>
    drawTable(
      'services',
      ['Service', 'Price', 'Quantities', 'Stock'],
      services.map((service) => [
        code(service.productId),
        money(service.amount, service.currency),
        `${service.minQuantity} to ${service.maxQuantity}, step ${service.stepQuantity}`,
        service.published
          ? service.stock === null
            ? 'any number'
            : String(service.stock)
          : badge('warn', 'not published'),
      ]),
      services.length,
    ),
  )
}
