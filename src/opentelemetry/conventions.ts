/** Instrumentation scope of spans and metrics. */
export const SCOPE = 'customer-ordering-sdk'

/**
 * Attribute names from OpenTelemetry's stable conventions for HTTP clients, and `url.template`.
 * They are copied here because an import would add a dependency for every user.
 */
export const ERROR_TYPE = 'error.type'
export const METHOD = 'http.request.method'
export const RESEND_COUNT = 'http.request.resend_count'
export const STATUS = 'http.response.status_code'
export const SERVER_ADDRESS = 'server.address'
export const SERVER_PORT = 'server.port'
export const URL_FULL = 'url.full'
export const URL_TEMPLATE = 'url.template'
export const REQUEST_DURATION = 'http.client.request.duration'

/** Histogram bounds, in seconds, that the conventions recommend for the duration of requests. */
export const REQUEST_DURATION_BOUNDS: number[] = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
]

/** Paths of the service, with a placeholder for each id. */
const TEMPLATES: readonly (readonly [path: RegExp, template: string])[] = [
  [/^\/v1\/orders$/, '/v1/orders'],
  [/^\/v1\/orders\/[^/]+$/, '/v1/orders/{orderId}'],
  [/^\/v1\/services$/, '/v1/services'],
  [/^\/v1\/services\/[^/]+$/, '/v1/services/{serviceId}'],
  [/^\/v1\/balance$/, '/v1/balance'],
]

/** Returns the template of a path, or undefined for an endpoint that this package does not know. */
export function templateOf(path: string): string | undefined {
  return TEMPLATES.find(([known]) => known.test(path))?.[1]
}
