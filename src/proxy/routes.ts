/** The calls that the proxy forwards, and how it recognises them. */
import { pathProblem } from '../http/path.ts'

/** Which call of the API a request is, with the names of the OpenAPI file. */
export interface ProxyRoute {
  /** What the visitor asks for. Only `createOrder` spends money. */
  readonly operation:
    | 'createOrder'
    | 'listOrders'
    | 'retrieveOrder'
    | 'listServices'
    | 'retrieveService'
    | 'retrieveBalance'
  /** Decoded id of the order or service to retrieve. Undefined for other operations. */
  readonly id?: string | undefined
}

/** A route, and the address below the service's base URL. Built from the route alone. */
export interface Target {
  readonly route: ProxyRoute
  readonly path: string
  /** Empty, or begins with `?`. */
  readonly query: string
}

interface Row {
  readonly operation: ProxyRoute['operation']
  readonly method: 'GET' | 'POST'
  readonly path: `/v1/${string}`
  /** True if an id follows the path. */
  readonly id?: true
  readonly query?: readonly string[]
}

const ROUTES: readonly Row[] = [
  { operation: 'createOrder', method: 'POST', path: '/v1/orders' },
  { operation: 'listOrders', method: 'GET', path: '/v1/orders', query: ['limit', 'offset', 'sourceSystem'] },
  { operation: 'retrieveOrder', method: 'GET', path: '/v1/orders', id: true },
  { operation: 'listServices', method: 'GET', path: '/v1/services', query: ['limit', 'offset'] },
  { operation: 'retrieveService', method: 'GET', path: '/v1/services', id: true },
  { operation: 'retrieveBalance', method: 'GET', path: '/v1/balance' },
]

/**
 * Matches the whole path below the mount path. Returns undefined if the proxy does not forward the
 * call, and the name of a query parameter that it does not forward.
 */
export function targetOf(
  method: string,
  url: URL,
  mountPath: string,
): Target | { wrong: string } | undefined {
  if (!url.pathname.startsWith(`${mountPath}/`)) return undefined
  const [, version, collection, segment, ...more] = url.pathname.slice(mountPath.length).split('/')
  if (more.length > 0) return undefined
  const path = `/${version}/${collection}`
  const hasId = segment !== undefined
  const row = ROUTES.find(
    (each) => each.method === method && each.path === path && (each.id ?? false) === hasId,
  )
  const id = hasId ? idOf(segment) : undefined
  if (row === undefined || (hasId && id === undefined)) return undefined
  const { operation, query = [] } = row
  const seen = new Set<string>()
  for (const name of url.searchParams.keys()) {
    // A repeated parameter could mean one thing to `authorize` and another to the service.
    if (!query.includes(name) || seen.has(name)) return { wrong: name }
    seen.add(name)
  }
  return {
    route: { operation, id },
    path: id === undefined ? path : `${path}/${encodeURIComponent(id)}`,
    query: seen.size === 0 ? '' : `?${url.searchParams}`,
  }
}

/**
 * Returns undefined if the segment could make the path reach another endpoint, even if a server
 * behind the proxy decodes the path again.
 */
function idOf(segment: string): string | undefined {
  if (/%(?:25)*(?:2f|5c)/i.test(segment) || pathProblem(segment) !== undefined) return undefined
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}
