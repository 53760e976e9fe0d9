/** Places an order in its own trace: `node --import ./instrumentation.ts app.ts REFERENCE`. */
import { SpanStatusCode, trace } from '@opentelemetry/api'
import { CustomerOrderingClient } from 'customer-ordering-sdk'
import { observeOpenOrders, telemetryHooks, traceHeaders } from 'customer-ordering-sdk/opentelemetry'
import { telemetry } from './instrumentation.ts'

const [, , externalOrderId] = process.argv
const { CUSTOMER_ORDERING_BASE_URL: baseUrl, CUSTOMER_ORDERING_API_KEY: apiKey } = process.env
if (!externalOrderId || !baseUrl || !apiKey)
  throw new Error('Pass a reference, and set CUSTOMER_ORDERING_BASE_URL and CUSTOMER_ORDERING_API_KEY.')

const client = new CustomerOrderingClient({
  baseUrl,
  apiKey,
  account: 'example.com/shop-eu',
  hooks: telemetryHooks({ baseUrl }),
})
const stop = observeOpenOrders(client)
const order = { serviceId: 'svc_standard', target: '@ada', quantity: 1, metadata: { externalOrderId } }

await trace.getTracer('shop').startActiveSpan('checkout', async (span) => {
  try {
    const { id } = await client.orders.create(order, { headers: traceHeaders() })
    console.log(`${externalOrderId} is order ${id}, trace ${span.spanContext().traceId}`)
  } catch (error) {
    span.setStatus({ code: SpanStatusCode.ERROR })
    console.error(String(error))
    process.exitCode = 1
  } finally {
    span.end()
  }
})
// Send the spans and metrics that wait for the next batch: without this, the program would lose
// them at its end.
await telemetry.shutdown()
stop()
await client.close()
