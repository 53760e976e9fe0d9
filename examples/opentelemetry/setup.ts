import { context, metrics, propagation, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { type IMetricReader, MeterProvider } from '@opentelemetry/sdk-metrics'
import { type SpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'

/**
 * Starts OpenTelemetry for the process; call it before anything else. In production `spanProcessor` is a
 * `BatchSpanProcessor`, and `reader` a `PeriodicExportingMetricReader`, each over an exporter for your collector.
 */
export function startTelemetry(options: {
  readonly spanProcessor: SpanProcessor
  readonly reader: IMetricReader
}): { shutdown(): Promise<void> } {
  // With it the span that is active around a call of the client is active in its hooks, also after waits and retries.
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  propagation.setGlobalPropagator(new W3CTraceContextPropagator())
  const tracing = new TracerProvider({ spanProcessors: [options.spanProcessor] })
  trace.setGlobalTracerProvider(tracing)
  const metering = new MeterProvider({ readers: [options.reader] })
  metrics.setGlobalMeterProvider(metering)
  return {
    shutdown: async () => {
      await Promise.all([tracing.shutdown(), metering.shutdown()])
    },
  }
}
