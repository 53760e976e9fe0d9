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
 * Starts OpenTelemetry for the process. Call `telemetryHooks()` and `observeOpenOrders()` after
 * this: instruments created earlier record nothing.
 *
 * @param options.serviceName the name of your program in traces and metrics. OTEL_SERVICE_NAME
 * overrides it.
 */
export function startTelemetry(options: {
  readonly serviceName: string
  readonly spanProcessor: SpanProcessor
  readonly reader: IMetricReader
}): { shutdown(): Promise<void> } {
  const resource = defaultResource()
    .merge(resourceFromAttributes({ [ATTR_SERVICE_NAME]: options.serviceName }))
    .merge(detectResources({ detectors: [envDetector] }))
  // Keeps the caller's span active in the client's hooks, even after waits and retries.
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  propagation.setGlobalPropagator(new W3CTraceContextPropagator())
  const tracing = new TracerProvider({ resource, spanProcessors: [options.spanProcessor] })
  trace.setGlobalTracerProvider(tracing)
  const metering = new MeterProvider({ resource, readers: [options.reader] })
  metrics.setGlobalMeterProvider(metering)
  return {
    // The program does not fail if the collector does not accept its telemetry.
    shutdown: async () => {
      for (const ending of await Promise.allSettled([tracing.shutdown(), metering.shutdown()]))
        if (ending.status === 'rejected') console.error('Telemetry was lost:', String(ending.reason))
    },
  }
}
