import {
  type Attributes,
  context,
  metrics,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import {
  ATTR_ERROR_TYPE,
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_REQUEST_RESEND_COUNT,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_SERVER_ADDRESS,
  ATTR_SERVER_PORT,
  ATTR_URL_FULL,
  METRIC_HTTP_CLIENT_REQUEST_DURATION,
} from '@opentelemetry/semantic-conventions'
import type { CallEvent, Hooks, SettledEvent } from 'customer-ordering-sdk'

/** A call of the client, and its request that is under way. */
interface OpenCall {
  readonly span: Span
  readonly idempotencyKey: string | undefined
  request?: Span
}

/**
 * Hooks that make a span of each call, a span of each of its requests below that, and an event of each retry; and count
 * both. The span that is active around the call, such as that of the request your server answers, is the parent.
 *
 * Names and attributes of requests are those of OpenTelemetry's conventions for HTTP clients; what they have no name for
 * begins with `ordering.`. Events hold no secret, so neither do spans: no API key, header, body, target or amount.
 *
 * @param baseUrl what the client was given
 */
export function telemetryHooks(baseUrl: string): Hooks {
  const tracer = trace.getTracer('customer-ordering-sdk')
  const meter = metrics.getMeter('customer-ordering-sdk')
  const durations = meter.createHistogram(METRIC_HTTP_CLIENT_REQUEST_DURATION, { unit: 's' })
  const calls = meter.createCounter('ordering.calls', { description: 'Calls that ended, by what they cost' })
  const { hostname, port, protocol } = new URL(baseUrl)
  const server = {
    [ATTR_SERVER_ADDRESS]: hostname,
    [ATTR_SERVER_PORT]: Number(port || (protocol === 'https:' ? 443 : 80)),
  }
  const open = new Map<string, OpenCall>()

  /** A call is heard of when it sends its first request, or, if it sends none, when it ends. */
  function begin({ callId, operation, idempotencyKey }: CallEvent, startTime?: number): OpenCall {
    const attributes = { 'ordering.operation': operation }
    const span = tracer.startSpan(operation, {
      kind: SpanKind.INTERNAL,
      attributes,
      ...(startTime === undefined ? {} : { startTime }),
    })
    const call = { span, idempotencyKey }
    open.set(callId, call)
    return call
  }

  /** Recovery sends an order under one call, and tells what became of it under another with the same key. */
  function take({ callId, idempotencyKey, recovery }: SettledEvent): OpenCall | undefined {
    for (const [id, call] of open) {
      if (id !== callId && (recovery === undefined || call.idempotencyKey !== idempotencyKey)) continue
      open.delete(id)
      return call
    }
    return undefined
  }

  return {
    onRequest: (event) => {
      const { callId, method, path, attempt } = event
      const call = open.get(callId) ?? begin(event)
      const attributes: Attributes = {
        ...server,
        [ATTR_HTTP_REQUEST_METHOD]: method,
        [ATTR_URL_FULL]: baseUrl + path,
        ...(attempt === 1 ? {} : { [ATTR_HTTP_REQUEST_RESEND_COUNT]: attempt - 1 }),
      }
      const parent = trace.setSpan(context.active(), call.span)
      call.request = tracer.startSpan(method, { kind: SpanKind.CLIENT, attributes }, parent)
    },
    onResponse: ({ callId, method, outcome, status, failure, requestId, durationMs }) => {
      const span = open.get(callId)?.request
      const labels: Attributes = { ...server, [ATTR_HTTP_REQUEST_METHOD]: method }
      if (status !== undefined) labels[ATTR_HTTP_RESPONSE_STATUS_CODE] = status
      if (outcome !== 'answer' || (status ?? 0) >= 400) {
        labels[ATTR_ERROR_TYPE] = failure ?? String(status ?? outcome)
        span?.setStatus({ code: SpanStatusCode.ERROR })
      }
      span?.setAttributes(labels)
      if (requestId !== undefined) span?.setAttribute('ordering.service_request_id', requestId)
      span?.end()
      durations.record(durationMs / 1000, labels)
    },
    onRetry: ({ callId, attempt, reason, delayMs }) => {
      const attributes = {
        'ordering.attempt': attempt,
        'ordering.reason': reason,
        'ordering.delay_ms': delayMs,
      }
      open.get(callId)?.span.addEvent('retry', attributes)
    },
    onSettled: (event) => {
      const { operation, ok, code, charged, attempts, durationMs } = event
      const { span } = take(event) ?? begin(event, Date.now() - durationMs)
      open.delete(event.callId)
      const attributes = {
        'ordering.attempts': attempts,
        'ordering.charged': charged,
        'ordering.external_order_id': event.externalOrderId,
        'ordering.idempotency_key': event.idempotencyKey,
        'ordering.order_id': event.orderId,
        'ordering.recovery': event.recovery,
        'ordering.remembered': event.remembered,
        [ATTR_ERROR_TYPE]: code,
      }
      for (const [name, value] of Object.entries(attributes))
        if (value !== undefined) span.setAttribute(name, value)
      if (!ok)
        span.setStatus({ code: SpanStatusCode.ERROR, ...(code === undefined ? {} : { message: code }) })
      span.end()
      // Few labels: ids are different for every order, and belong into spans.
      const labels: Attributes = { 'ordering.operation': operation }
      if (code !== undefined) labels[ATTR_ERROR_TYPE] = code
      if (charged !== undefined) labels['ordering.charged'] = charged
      calls.add(1, labels)
    },
  }
}

/**
 * `traceparent` for one call: `client.orders.create(request, { headers: traceHeaders() })`. It names the span that is
 * active here, for the service to go on from; all requests of the call carry the same.
 */
export function traceHeaders(): Record<string, string> {
  const headers: Record<string, string> = {}
  propagation.inject(context.active(), headers)
  return headers
}
