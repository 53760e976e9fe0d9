import { context, metrics, propagation, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources'
import { type IMetricReader, MeterProvider } from '@opentelemetry/sdk-metrics'
import { type SpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { ATTR_SERVICE_NAME } from '@opentelemetry/semantic-conventions'

/**
 * Starts OpenTelemetry for the process. `telemetryHooks()` and `observeOpenOrders()` come after it: an instrument that was made before counts nothing.
 *
 * @param options.serviceName what your program is called where its spans are looked at; OTEL_SERVICE_NAME wins over it
 */
export function startTelemetry(options: {
  readonly serviceName: string
  readonly spanProcessor: SpanProcessor
  readonly reader: IMetricReader
}): { shutdown(): Promise<void> } {
  const resource = defaultResource()
    .merge(resourceFromAttributes({ [ATTR_SERVICE_NAME]: options.serviceName }))
    .merge(detectResources({ detectors: [envDetector] }))
  // With it the span that is active around a call of the client is active in its hooks, also after waits and retries.
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  propagation.setGlobalPropagator(new W3CTraceContextPropagator())
  const tracing = new TracerProvider({ resource, spanProcessors: [options.spanProcessor] })
  trace.setGlobalTracerProvider(tracing)
  const metering = new MeterProvider({ resource, readers: [options.reader] })
  metrics.setGlobalMeterProvider(metering)
  return {
    // A program that has done its work does not fail because nobody took its telemetry.
    shutdown: async () => {
      for (const ending of await Promise.allSettled([tracing.shutdown(), metering.shutdown()]))
        if (ending.status === 'rejected') console.error('Telemetry was lost:', String(ending.reason))
    },
  }
}
