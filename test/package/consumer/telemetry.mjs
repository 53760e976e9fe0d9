// Records spans and metrics of one call with the installed version of OpenTelemetry's API, and a
// minimal SDK.
import { metrics, trace } from '@opentelemetry/api'
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { observeOpenOrders, telemetryHooks } from 'customer-ordering-sdk/opentelemetry'
import { createSandbox } from 'customer-ordering-sdk/sandbox'

const spans = []
const numbers = []
const callbacks = []
const noSpan = trace.getTracer('none').startSpan('none')
trace.setGlobalTracerProvider({
  getTracer: () => ({
    startSpan: (name) => {
      spans.push(name)
      return noSpan
    },
  }),
})
const counter = (name) => ({ add: () => numbers.push(name), record: () => numbers.push(name) })
metrics.setGlobalMeterProvider({
  getMeter: () => ({
    createHistogram: counter,
    createCounter: counter,
    createObservableGauge: (name) => ({ name }),
    addBatchObservableCallback: (callback) => callbacks.push(callback),
    removeBatchObservableCallback: () => {},
  }),
})

const { baseUrl, apiKey, fetch } = createSandbox()
const client = new CustomerOrderingClient({ baseUrl, apiKey, fetch, hooks: telemetryHooks({ baseUrl }) })
const stop = observeOpenOrders(client)
await client.balance.retrieve()
for (const callback of callbacks)
  await callback({
    observe: ({ name }, value) => name === 'ordering.store.readable' && numbers.push(`${name} ${value}`),
  })
stop()
await client.close()
console.log(JSON.stringify({ spans, numbers }))
