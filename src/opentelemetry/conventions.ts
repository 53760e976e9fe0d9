export const SCOPE = 'customer-ordering-sdk'

// Names from OpenTelemetry's conventions for HTTP clients. Copied, because importing them would
// add a dependency for every user.
export const ERROR_TYPE = 'error.type'
export const METHOD = 'http.request.method'
export const RESEND_COUNT = 'http.request.resend_count'
export const STATUS = 'http.response.status_code'
export const SERVER_ADDRESS = 'server.address'
export const SERVER_PORT = 'server.port'
export const URL_FULL = 'url.full'
export const URL_TEMPLATE = 'url.template'
export const REQUEST_DURATION = 'http.client.request.duration'

/** In seconds, as OpenTelemetry's conventions for HTTP clients recommend. */
export const REQUEST_DURATION_BOUNDS: number[] = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
]

const TEMPLATES: readonly (readonly [path: RegExp, template: string])[] = [
  [/^\/v1\/orders$/, '/v1/orders'],
  [/^\/v1\/orders\/[^/]+$/, '/v1/orders/{orderId}'],
  [/^\/v1\/services$/, '/v1/services'],
  [/^\/v1\/services\/[^/]+$/, '/v1/services/{serviceId}'],
  [/^\/v1\/balance$/, '/v1/balance'],
]

export function templateOf(path: string): string | undefined {
  return TEMPLATES.find(([known]) => known.test(path))?.[1]
}
