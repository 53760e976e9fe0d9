import {
  type Attributes,
  type Context,
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
import type { CallEvent, Hooks } from 'customer-ordering-sdk'

/**
 * Hooks that make a span of each call, a span of each of its requests below that, and an event of each retry; and count
 * both. Every span ends, whatever becomes of the call: each request is followed by its response, and each call by its ending.
 * The span that is active around the call, such as that of the request your server answers, is the parent.
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
  // As the client reads it.
  const base = baseUrl.replace(/\/+$/, '')
  const { hostname, port, protocol } = new URL(base)
  const server = {
    [ATTR_SERVER_ADDRESS]: hostname,
    [ATTR_SERVER_PORT]: Number(port || (protocol === 'https:' ? 443 : 80)),
  }
  /** Spans that have not ended, by the id of their call, which has one request at a time. */
  const open = new Map<string, Span>()
  const requests = new Map<string, Span>()

  /** A call is heard of when it sends its first request, or, if it sends none, when it ends. */
  function begin({ callId, operation }: CallEvent, startTime?: number): Span {
    const span = tracer.startSpan(operation, {
      kind: SpanKind.INTERNAL,
      attributes: { 'ordering.operation': operation },
      ...(startTime === undefined ? {} : { startTime }),
    })
    open.set(callId, span)
    return span
  }

  /** The context for a request of the call. */
  function below(event: CallEvent): Context {
    // Recovery sends orders under one id and tells what became of each under another, so nothing says when the first one
    // ends: its requests are below the active span, and so is what became of the order.
    if (event.operation === 'orders.recover' && event.method === 'POST') return context.active()
    return trace.setSpan(context.active(), open.get(event.callId) ?? begin(event))
  }

  return {
    onRequest: (event) => {
      const { callId, operation, method, path, attempt, idempotencyKey } = event
      const attributes: Attributes = {
        ...server,
        [ATTR_HTTP_REQUEST_METHOD]: method,
        [ATTR_URL_FULL]: base + path,
        'ordering.operation': operation,
        ...(idempotencyKey === undefined ? {} : { 'ordering.idempotency_key': idempotencyKey }),
        ...(attempt === 1 ? {} : { [ATTR_HTTP_REQUEST_RESEND_COUNT]: attempt - 1 }),
      }
      requests.set(callId, tracer.startSpan(method, { kind: SpanKind.CLIENT, attributes }, below(event)))
    },
    onResponse: ({ callId, method, outcome, status, failure, requestId, durationMs }) => {
      const span = requests.get(callId)
      requests.delete(callId)
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
      const span = open.get(callId) ?? trace.getActiveSpan()
      span?.addEvent('retry', attributes)
    },
    onSettled: (event) => {
      const { operation, ok, code, charged, attempts, durationMs } = event
      const span = open.get(event.callId) ?? begin(event, Date.now() - durationMs)
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
