/** The calls that the proxy forwards, and how it recognises them. */
import { pathProblem } from '../http/path.ts'

/** Which call of the API a request is, with the names of the OpenAPI file. */
export type ProxyRoute =
  | {
      /** What the visitor asks for. Only `createOrder` spends money. */
      readonly operation: 'createOrder' | 'listOrders' | 'listServices' | 'retrieveBalance'
      readonly id?: undefined
    }
  | {
      /** What the visitor asks for. */
      readonly operation: 'retrieveOrder' | 'retrieveService'
      /** Decoded id of the order or service to retrieve. */
      readonly id: string
    }

/** A route, and the address below the service's base URL. Built from the route alone. */
export interface Target {
  readonly route: ProxyRoute
  readonly path: string
  /** Empty, or begins with `?`. */
  readonly query: string
}

/** By method and path. */
const ROUTES: Readonly<Record<string, { readonly route: ProxyRoute; readonly query?: readonly string[] }>> = {
  'POST /v1/orders': { route: { operation: 'createOrder' } },
  'GET /v1/orders': { route: { operation: 'listOrders' }, query: ['limit', 'offset', 'sourceSystem'] },
  'GET /v1/services': { route: { operation: 'listServices' }, query: ['limit', 'offset'] },
  'GET /v1/balance': { route: { operation: 'retrieveBalance' } },
}

/** By method and path, which an id follows. */
const ROUTES_WITH_ID: Readonly<Record<string, Extract<ProxyRoute, { id: string }>['operation']>> = {
  'GET /v1/orders': 'retrieveOrder',
  'GET /v1/services': 'retrieveService',
}

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
  const place = `${method} ${path}`
  if (segment !== undefined) {
    const id = idOf(segment)
    const operation = Object.hasOwn(ROUTES_WITH_ID, place) ? ROUTES_WITH_ID[place] : undefined
    if (operation === undefined || id === undefined) return undefined
    const [wrong] = url.searchParams.keys()
    if (wrong !== undefined) return { wrong }
    return { route: { operation, id }, path: `${path}/${encodeURIComponent(id)}`, query: '' }
  }
  const row = Object.hasOwn(ROUTES, place) ? ROUTES[place] : undefined
  if (row === undefined) return undefined
  const { route, query = [] } = row
  const seen = new Set<string>()
  for (const name of url.searchParams.keys()) {
    // A repeated parameter could mean one thing to `authorize` and another to the service.
    if (!query.includes(name) || seen.has(name)) return { wrong: name }
    seen.add(name)
  }
  return { route: { ...route }, path, query: seen.size === 0 ? '' : `?${url.searchParams}` }
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
