/** The program with its real exporters, in front of a collector that keeps what it is sent. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { serveSandbox } from 'customer-ordering-sdk/sandbox/server'

test('a collector gets the spans and metrics of a program that ends at once', async () => {
  const received = new Map<string, unknown>()
  const collector = createServer(async (request, response) => {
    received.set(request.url ?? '', await json(request))
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  }).listen(0, '127.0.0.1')
  await once(collector, 'listening')
  const sandbox = createSandbox()
  const service = await serveSandbox(sandbox)
  try {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--import', './instrumentation.ts', 'app.ts', 'cart-1'],
      {
        cwd: fileURLToPath(new URL('.', import.meta.url)),
        env: {
          ...process.env,
          CUSTOMER_ORDERING_BASE_URL: `${service.url}/`,
          CUSTOMER_ORDERING_API_KEY: sandbox.apiKey,
          OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(collector.address() as AddressInfo).port}`,
        },
      },
    )
    const [, traceId = 'none'] = /cart-1 is order \S+, trace (\w{32})/.exec(stdout) ?? []
    const traces = JSON.stringify(received.get('/v1/traces'))
    for (const text of [traceId, '"checkout"', '"orders.create"', '"POST"', `${service.url}/v1/orders`])
      assert.ok(traces.includes(text), text)
    assert.ok(JSON.stringify(received.get('/v1/metrics')).includes('"ordering.calls"'))
    for (const sent of received.values())
      assert.ok(JSON.stringify(sent).includes('{"key":"service.name","value":{"stringValue":"shop"}}'))
    sandbox.expectChargedOnce('cart-1')
    assert.match(sandbox.requests[0]?.headers['traceparent'] ?? '', new RegExp(traceId))
  } finally {
    collector.close()
    collector.closeAllConnections()
    await service.close()
  }
})
