import { context, metrics, propagation, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import { expect } from 'vitest'

export type Point = readonly [labels: Readonly<Record<string, unknown>>, value: unknown]

/**
 * OpenTelemetry's own SDK, registered for the process. Collects the data that a collector would
 * receive.
 */
export class Collected {
  readonly #spans = new InMemorySpanExporter()
  readonly #numbers = new InMemoryMetricExporter(AggregationTemporality.DELTA)
  readonly #reader = new PeriodicExportingMetricReader({
    exporter: this.#numbers,
    exportIntervalMillis: 3_600_000,
  })
  #started = 0

  constructor() {
    const noted = { onEnd() {}, forceFlush: async () => {}, shutdown: async () => {} }
    const spanProcessors = [
      { ...noted, onStart: () => void this.#started++ },
      new SimpleSpanProcessor({ exporter: this.#spans }),
    ]
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
    propagation.setGlobalPropagator(new W3CTraceContextPropagator())
    trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors }))
    metrics.setGlobalMeterProvider(new MeterProvider({ readers: [this.#reader] }))
  }

  /** Forgets all spans; every one must have ended. */
  reset(): void {
    expect(this.spans).toHaveLength(this.#started)
    this.#spans.reset()
    this.#started = 0
  }

  get spans(): readonly ReadableSpan[] {
    return this.#spans.getFinishedSpans()
  }

  /** The only span of that name, with its children in the same trace. */
  tree(name: string): { readonly span: ReadableSpan; readonly children: readonly ReadableSpan[] } {
    const [span, ...others] = this.spans.filter((candidate) => candidate.name === name)
    if (span === undefined) throw new Error(`there is no span ${name}`)
    expect(others).toEqual([])
    const { spanId, traceId } = span.spanContext()
    const children = this.spans.filter(({ parentSpanContext }) => parentSpanContext?.spanId === spanId)
    for (const child of children) expect(child.spanContext().traceId).toBe(traceId)
    return { span, children }
  }

  /** The data points since the last collection. Metrics without new data are absent. */
  async numbers(name: string): Promise<readonly Point[]> {
    this.#numbers.reset()
    await this.#reader.forceFlush()
    return this.#numbers
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
      .filter(({ descriptor }) => descriptor.name === name)
      .flatMap(({ dataPoints }) => dataPoints.map(({ attributes, value }): Point => [attributes, value]))
  }
}
