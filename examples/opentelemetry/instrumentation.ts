/**
 * Sends spans and metrics to a collector as OTLP over HTTP: to localhost:4318, or where OTEL_EXPORTER_OTLP_ENDPOINT and
 * OTEL_EXPORTER_OTLP_HEADERS say. `node --import` loads it before the program.
 */
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace'
import { startTelemetry } from './setup.ts'

export const telemetry = startTelemetry({
  serviceName: 'shop',
  spanProcessor: new BatchSpanProcessor({ exporter: new OTLPTraceExporter() }),
  reader: new PeriodicExportingMetricReader({ exporter: new OTLPMetricExporter() }),
})
