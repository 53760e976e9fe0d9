import type { FaultAction, FaultRule } from '../../../src/sandbox/service/faults.ts'
import type { Draw } from '../../support/seeds.ts'
import { REFUSED } from '../../support/statuses.ts'

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

const dropped = (): FaultAction => ({ type: 'drop' })

/** The faults besides {@link dropped}, each as probable as the others. */
const FAULTS: readonly ((draw: Draw, commit: boolean) => FaultAction)[] = [
  () => ({ type: 'commitThenDrop' }),
  () => ({ type: 'commitThenDrop' }),
  () => ({ type: 'crash' }),
  (draw) => ({ type: 'cutBody', cleanly: draw.chance(0.5), after: draw.pick(0, 5, 20) }),
  (draw) => ({ type: 'stallBody', after: draw.pick(0, 12) }),
  (_, commit) => ({ type: 'stall', commit }),
  (draw) => ({
    type: 'delay',
    ms: draw.pick(100, 3000, 20_000, 40_000, 130_000),
    when: draw.pick('before', 'during', 'after'),
  }),
  brokenServer,
  brokenServer,
  (draw) => ({ type: 'status', status: draw.pick(...REFUSED), code: draw.pick('REFUSED', 'OTHER') }),
  (draw) => ({ type: 'status', status: draw.pick(401, 403, 425, 429, 413) }),
  // A gateway's page instead of the service's response.
  (draw, commit) => ({ type: 'status', status: draw.pick(400, 402, 403, 404, 422, 418), html: true, commit }),
  (_, commit) => ({ type: 'inProgress', commit }),
  (draw, commit) =>
    draw.chance(0.5)
      ? { type: 'status', status: 429, headers: { 'retry-after': draw.pick('1', '30', '200') } }
      : { type: 'status', status: 503, headers: { 'retry-after': draw.pick('1', '60') }, commit },
  (draw) => ({ type: 'transformBody', transform: draw.pick(withoutAmount, withoutId) }),
  (draw, commit) =>
    draw.chance(0.5)
      ? {
          type: 'status',
          status: draw.pick(302, 303, 307, 308),
          headers: { location: `https://${ELSEWHERE}/v1/orders` },
          commit,
        }
      : { type: 'status', status: 409, code: draw.pick('LOCKED', 'CONFLICT'), commit },
  (draw, commit) => ({
    type: 'bytes',
    status: draw.pick(200, 202),
    // The last body may be any page's, and is not an order.
    body: draw.pick('<html>login</html>', '', '{}', '{"id":"a-page"}'),
    commit,
  }),
]

export function drawFault(draw: Draw): FaultAction {
  const commit = draw.chance(0.6)
  return draw.pick(dropped, ...FAULTS)(draw, commit)
}

function brokenServer(draw: Draw, commit: boolean): FaultAction {
  return {
    type: 'status',
    status: draw.pick(500, 502, 503, 504, 520, 408),
    commit,
    html: draw.chance(0.5),
  }
}

export function withoutAmount(body: unknown): unknown {
  return isOrder(body) ? { ...body, amount: 'much' } : body
}

function withoutId(body: unknown): unknown {
  return isOrder(body) ? { ...body, id: '' } : body
}

function isOrder(body: unknown): body is { readonly id: string; readonly amount: number } {
  return typeof body === 'object' && body !== null && 'id' in body && 'amount' in body
}
