import {
  type Attributes,
  context,
  type MeterProvider,
  metrics,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TracerProvider,
  trace,
} from '@opentelemetry/api'
import { ConfigurationError } from '../errors/classes.ts'
import type { CallEvent, Hooks } from '../hooks.ts'
import { baseUrl } from '../settings/base-url.ts'
import { HEADER_VALUE, type Readers, readFields, withMethods } from '../settings/readers.ts'
import {
  ERROR_TYPE,
  METHOD,
  REQUEST_DURATION,
  REQUEST_DURATION_BOUNDS,
  RESEND_COUNT,
  SCOPE,
  SERVER_ADDRESS,
  SERVER_PORT,
  STATUS,
  templateOf,
  URL_FULL,
  URL_TEMPLATE,
} from './conventions.ts'

/** Options of {@link telemetryHooks}. */
export interface TelemetryOptions {
  /** The client's `baseUrl`. Spans and metrics contain its server and port. */
  readonly baseUrl: string | URL
  /** Creates the spans. Default: the provider registered for the process. */
  readonly tracerProvider?: TracerProvider | undefined
  /**
   * Creates the metrics.
   *
   * Default: the provider already registered for the process when `telemetryHooks` is called.
   */
  readonly meterProvider?: MeterProvider | undefined
}

const address: Readers<TelemetryOptions>['baseUrl'] = baseUrl

const OPTIONS: Readers<TelemetryOptions> = {
  baseUrl: address,
  tracerProvider: withMethods('getTracer'),
  meterProvider: withMethods('getMeter'),
}

/**
 * Creates hooks for OpenTelemetry.
 *
 * Each call becomes a span, each of its requests a child span, and each retry an event. Metrics
 * count requests, retries and outcomes. A call's span is a child of the span that is active around
 * the call, if there is one, and ends even if the call fails. In `recover()`, each order is a
 * separate call, so without an active span each order gets its own trace.
 *
 * Names that OpenTelemetry's conventions for HTTP clients do not define begin with `ordering.`.
 * Spans contain no API key, header, body, target or amount.
 * docs/guide/opentelemetry.md lists all spans, attributes and metrics.
 *
 * @throws {ConfigurationError} naming the option that is missing, unknown or wrong
 * @example
 * const baseUrl = 'https://api.example.com'
 * const client = new CustomerOrderingClient({ baseUrl, hooks: telemetryHooks({ baseUrl }) })
 */
export function telemetryHooks(options: TelemetryOptions): Hooks {
  const read = readFields(options, OPTIONS, refuseOption)
  const base = String(read.baseUrl ?? refuseOption('is missing', 'baseUrl'))
  const { hostname, port, protocol, pathname } = new URL(base)
  const server = {
    [SERVER_ADDRESS]: hostname,
    [SERVER_PORT]: Number(port || (protocol === 'https:' ? 443 : 80)),
  }
  const tracer = (read.tracerProvider ?? trace).getTracer(SCOPE)
  const meter = (read.meterProvider ?? metrics).getMeter(SCOPE)
  const durations = meter.createHistogram(REQUEST_DURATION, {
    description: 'Duration of one request, including the response body',
    unit: 's',
    advice: { explicitBucketBoundaries: REQUEST_DURATION_BOUNDS },
  })
  const calls = meter.createCounter('ordering.calls', {
    description: 'Completed calls, by whether the wallet was charged',
  })
  const retries = meter.createCounter('ordering.retries', {
    description: 'Retries, polls and waits for other processes, by reason',
  })
  const callSpans = new Map<string, Span>()
  // By call id, because a call has at most one request in flight.
  const requestSpans = new Map<string, Span>()

  // Metrics use these attributes, so each must have few different values.
  const labelsOf = ({ method, path }: CallEvent): Attributes => {
    const template = templateOf(path)
    return {
      ...server,
      [METHOD]: method,
      ...(template && { [URL_TEMPLATE]: pathname.replace(/\/$/, '') + template }),
    }
  }

  const startCallSpan = ({ callId, operation }: CallEvent, startTime?: number): Span => {
    const span = tracer.startSpan(operation, {
      kind: SpanKind.INTERNAL,
      attributes: { 'ordering.operation': operation },
      ...(startTime !== undefined && { startTime }),
    })
    callSpans.set(callId, span)
    return span
  }

  return {
    onRequest: (event) => {
      const { callId, operation, method, path, attempt, idempotencyKey } = event
      const labels = labelsOf(event)
      const template = labels[URL_TEMPLATE]
      const attributes: Attributes = {
        ...labels,
        [URL_FULL]: base + path,
        'ordering.operation': operation,
        ...(idempotencyKey !== undefined && { 'ordering.idempotency_key': idempotencyKey }),
        ...(attempt > 1 && { [RESEND_COUNT]: attempt - 1 }),
      }
      const name = template === undefined ? method : `${method} ${template}`
      const parent = trace.setSpan(context.active(), callSpans.get(callId) ?? startCallSpan(event))
      requestSpans.set(callId, tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }, parent))
    },
    onResponse: (event) => {
      const { callId, outcome, status, failure, requestId, durationMs } = event
      const span = requestSpans.get(callId)
      requestSpans.delete(callId)
      const labels = labelsOf(event)
      if (status !== undefined) labels[STATUS] = status
      if (outcome !== 'answer' || (status ?? 0) >= 400) {
        labels[ERROR_TYPE] = failure ?? String(status ?? outcome)
        span?.setStatus({ code: SpanStatusCode.ERROR })
      }
      span?.setAttributes(labels)
      if (requestId !== undefined) span?.setAttribute('ordering.service_request_id', requestId)
      span?.end()
      durations.record(durationMs / 1000, labels)
    },
    onRetry: ({ callId, operation, attempt, reason, delayMs }) => {
      const attributes = {
        'ordering.attempt': attempt,
        'ordering.reason': reason,
        'ordering.delay_ms': delayMs,
      }
      const span = callSpans.get(callId) ?? trace.getActiveSpan()
      span?.addEvent('retry', attributes)
      retries.add(1, { 'ordering.operation': operation, 'ordering.reason': reason })
    },
    onSettled: (event) => {
      const { callId, operation, ok, code, charged, recovery, remembered, attempts, durationMs } = event
      const span = callSpans.get(callId) ?? startCallSpan(event, Date.now() - durationMs)
      callSpans.delete(callId)
      const attributes: Attributes = {
        'ordering.attempts': attempts,
        'ordering.charged': charged,
        'ordering.external_order_id': event.externalOrderId,
        'ordering.idempotency_key': event.idempotencyKey,
        'ordering.order_id': event.orderId,
        'ordering.recovery': recovery,
        'ordering.remembered': remembered,
        [ERROR_TYPE]: code,
      }
      span.setAttributes(known(attributes))
      if (!ok) span.setStatus({ code: SpanStatusCode.ERROR, ...(code !== undefined && { message: code }) })
      span.end()
      // No ids here: an id would give every order its own time series.
      const labels: Attributes = {
        'ordering.operation': operation,
        'ordering.charged': charged,
        'ordering.recovery': recovery,
        'ordering.remembered': remembered,
        [ERROR_TYPE]: code,
      }
      calls.add(1, known(labels))
    },
  }
}

/**
 * Returns the headers that identify the active span, such as `traceparent`, for the requests of one
 * call.
 *
 * @example
 * await client.orders.create(request, { headers: traceHeaders() })
 */
export function traceHeaders(): Record<string, string> {
  const headers: Record<string, string> = {}
  propagation.inject(context.active(), headers)
  // Omits what a visitor's headers make invalid, such as an empty `tracestate`: the call would be rejected.
  return Object.fromEntries(Object.entries(headers).filter(([, value]) => HEADER_VALUE.test(value)))
}

/** Removes attributes without a value, because an exporter may write `undefined` as a string. */
function known(attributes: Attributes): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined))
}

function refuseOption(problem: string, name?: string): never {
  throw new ConfigurationError(
    `telemetryHooks ${name === undefined ? 'options' : `option ${name}`} ${problem}.`,
  )
}
