/**
 * Sends spans and metrics to a collector as OTLP over HTTP. The default address is localhost:4318.
 * Change it with OTEL_EXPORTER_OTLP_ENDPOINT, and add headers with OTEL_EXPORTER_OTLP_HEADERS.
 * `node --import` loads this file before the program.
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
