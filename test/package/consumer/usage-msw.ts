// The entry point that needs msw.
import { sandboxHandlers } from 'customer-ordering-sdk/msw'
import { createSandbox } from 'customer-ordering-sdk/sandbox'
import { setupServer } from 'msw/node'

export function start(): void {
  setupServer(...sandboxHandlers(createSandbox(), { baseUrl: 'https://api.example.com' })).listen()
}
