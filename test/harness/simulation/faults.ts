import type { FaultAction, FaultRule } from '../../../src/sandbox/service/faults.ts'
import type { Draw } from './draw.ts'

/** The target of redirects. */
export const ELSEWHERE = 'elsewhere.test'

/**
 * Faults of the service and of gateways. None of them lies: after a clean refusal, nothing was
 * bought.
 */
export function drawFaults(draw: Draw): FaultRule[] {
  const count = draw.weighted([0, 4], [1, 4], [2, 3], [3, 1])
  return Array.from({ length: count }, () => ({
    match: { operation: draw.chance(0.92) ? 'createOrder' : draw.pick('listOrders', 'retrieveOrder') },
    skip: draw.weighted([0, 4], [1, 2], [2, 1]),
    times: draw.weighted([1, 4], [2, 2], [3, 1], [6, 1]),
    ...(draw.chance(0.3) ? { probability: 0.5 } : {}),
    action: drawFault(draw),
  }))
}

export function drawFault(draw: Draw): FaultAction {
  const commit = draw.chance(0.6)
  switch (draw.below(18)) {
    case 0:
      return { type: 'drop' }
    case 1:
    case 2:
      return { type: 'commitThenDrop' }
    case 3:
      return { type: 'crash' }
    case 4:
      return { type: 'cutBody', cleanly: draw.chance(0.5), after: draw.pick(0, 5, 20) }
    case 5:
      return { type: 'stallBody', after: draw.pick(0, 12) }
    case 6:
      return { type: 'stall', commit }
    case 7:
      return {
        type: 'delay',
        ms: draw.pick(100, 3000, 20_000, 40_000, 130_000),
        when: draw.pick('before', 'during', 'after'),
      }
    case 8:
    case 9:
      return {
        type: 'status',
        status: draw.pick(500, 502, 503, 504, 520, 408),
        commit,
        html: draw.chance(0.5),
      }
    case 10:
      return { type: 'status', status: draw.pick(400, 402, 404, 422), code: draw.pick('REFUSED', 'OTHER') }
    case 11:
      return { type: 'status', status: draw.pick(401, 403, 425, 429, 413) }
    case 12:
      // A gateway's page instead of the service's response.
      return { type: 'status', status: draw.pick(400, 402, 403, 404, 422, 418), html: true, commit }
    case 13:
      return { type: 'inProgress', commit }
    case 14:
      return draw.chance(0.5)
        ? { type: 'retryAfter', value: draw.pick('1', '30', '200') }
        : { type: 'retryAfter', value: draw.pick('1', '60'), status: 503, commit }
    case 15:
      return { type: 'transformBody', transform: draw.pick(withoutAmount, withoutId) }
    case 16:
      return draw.chance(0.5)
        ? {
            type: 'redirect',
            location: `https://${ELSEWHERE}/v1/orders`,
            status: draw.pick(302, 303, 307, 308),
            commit,
          }
        : { type: 'status', status: 409, code: draw.pick('LOCKED', 'CONFLICT'), commit }
    default:
      return {
        type: 'bytes',
        status: draw.pick(200, 202),
        // The last body may be any page's, and is not an order.
        body: draw.pick('<html>login</html>', '', '{}', '{"id":"a-page"}'),
        commit,
      }
  }
}

function withoutAmount(body: unknown): unknown {
  return isOrder(body) ? { ...body, amount: 'much' } : body
}

function withoutId(body: unknown): unknown {
  return isOrder(body) ? { ...body, id: '' } : body
}

function isOrder(body: unknown): body is { readonly id: string; readonly amount: number } {
  return typeof body === 'object' && body !== null && 'id' in body && 'amount' in body
}
