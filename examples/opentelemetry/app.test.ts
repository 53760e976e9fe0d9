/**
 * Runs the program with its real exporters. A test collector records everything that it receives.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json, text } from 'node:stream/consumers'
import { afterEach, beforeEach, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createSandbox, type Sandbox } from 'customer-ordering-sdk/sandbox'
import { type SandboxServer, serveSandbox } from 'customer-ordering-sdk/sandbox/server'

interface Run {
  readonly code: number | null
  readonly output: string
}

/** Runs the program to its end. */
async function runApp(service: SandboxServer, apiKey: string, collector: string): Promise<Run> {
  const program = spawn(process.execPath, ['--import', './instrumentation.ts', 'app.ts', 'cart-1'], {
    cwd: fileURLToPath(new URL('.', import.meta.url)),
    env: {
      ...process.env,
      CUSTOMER_ORDERING_BASE_URL: `${service.url}/`,
      CUSTOMER_ORDERING_API_KEY: apiKey,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector,
      OTEL_EXPORTER_OTLP_TIMEOUT: '1000',
    },
  })
  const [out, error, [code]] = await Promise.all([
    text(program.stdout),
    text(program.stderr),
    once(program, 'exit'),
  ])
  return { code, output: out + error }
}

let sandbox: Sandbox
let service: SandboxServer
beforeEach(async () => {
  sandbox = createSandbox()
  service = await serveSandbox(sandbox)
})
afterEach(() => service.close())

test('the collector receives the spans and metrics of a program that ends immediately', async () => {
  const received = new Map<string, unknown>()
  const collector = createServer(async (request, response) => {
    received.set(request.url ?? '', await json(request))
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  }).listen(0, '127.0.0.1')
  await once(collector, 'listening')
  const { port } = collector.address() as AddressInfo
  try {
    const { code, output } = await runApp(service, sandbox.apiKey, `http://127.0.0.1:${port}`)
    assert.equal(code, 0, output)
    const [, traceId = 'none'] = /cart-1 is order \S+, trace (\w{32})/.exec(output) ?? []
    const traces = JSON.stringify(received.get('/v1/traces'))
    for (const part of [
      traceId,
      '"checkout"',
      '"orders.create"',
      '"POST /v1/orders"',
      `"${service.url}/v1/orders"`,
    ])
      assert.ok(traces.includes(part), part)
    const metrics = JSON.stringify(received.get('/v1/metrics'))
    for (const name of ['ordering.calls', 'ordering.open_orders', 'ordering.oldest_open_order.age'])
      assert.ok(metrics.includes(`"${name}"`), name)
    for (const sent of received.values())
      assert.ok(JSON.stringify(sent).includes('{"key":"service.name","value":{"stringValue":"shop"}}'))
    sandbox.expectChargedOnce('cart-1')
    assert.match(sandbox.requests[0]?.headers['traceparent'] ?? '', new RegExp(traceId))
  } finally {
    collector.close()
    collector.closeAllConnections()
  }
})

test('an order succeeds although its telemetry is lost', async () => {
  // No collector listens on this port.
  const { code, output } = await runApp(service, sandbox.apiKey, 'http://127.0.0.1:1')
  assert.equal(code, 0, output)
  assert.match(output, /cart-1 is order/)
  assert.match(output, /Telemetry was lost/)
  sandbox.expectChargedOnce('cart-1')
})
