// Features that browsers lack.
import { fileURLToPath } from 'node:url'
import { type CustomerOrderingClient, MemoryStore } from 'customer-ordering-sdk'
import { build } from 'esbuild'
import { expect, it } from 'vitest'
import { Lab } from '../../support/lab.ts'

it('an await using block closes the client at its end', async () => {
  class ClosingStore extends MemoryStore {
    closed = 0
    override async close(): Promise<void> {
      this.closed++
    }
  }
  const store = new ClosingStore()
  {
    await using client = new Lab().client({ store })
    await client.balance.retrieve()
    expect(store.closed).toBe(0)
  }
  expect(store.closed).toBe(1)
})

it('without Symbol.asyncDispose in the runtime, close() closes the client', async () => {
  const bundle = await build({
    entryPoints: [fileURLToPath(new URL('../../../src/index.ts', import.meta.url))],
    bundle: true,
    write: false,
    format: 'iife',
    globalName: 'sdk',
  })
  const older = Object.assign((description?: string) => Symbol(description), { for: Symbol.for })
  for (const name of ['iterator', 'asyncIterator', 'hasInstance', 'toStringTag'] as const) {
    Object.defineProperty(older, name, { value: Symbol[name] })
  }
  const load = new Function('Symbol', `${bundle.outputFiles[0]?.text}; return sdk.CustomerOrderingClient`)
  const Client = load(older) as typeof CustomerOrderingClient
  expect(Object.getOwnPropertyNames(Client.prototype)).toContain('close')
  expect(Object.getOwnPropertyNames(Client.prototype)).not.toContain('undefined')
  expect(Object.getOwnPropertySymbols(Client.prototype)).toEqual([])
  await new Client({ baseUrl: 'https://api.example.com', apiKey: 'key' }).close()
  expect(
    Object.getOwnPropertySymbols((load(Symbol) as typeof CustomerOrderingClient).prototype),
  ).toHaveLength(1)
})
