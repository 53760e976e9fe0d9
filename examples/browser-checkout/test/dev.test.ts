/** `npm run dev`: Vite, with the same proxy in front of its own sandbox. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createServer } from 'vite'
import { openBrowser } from './browser.ts'

test('the development server places an order in its sandbox', async () => {
  // Ignore the shell's settings for production: a test must not spend money.
  delete process.env['CUSTOMER_ORDERING_BASE_URL']
  const root = fileURLToPath(new URL('..', import.meta.url))
  const server = await createServer({ root, logLevel: 'error', server: { port: 0 } })
  const browser = await openBrowser()
  try {
    await server.listen()
    const [address = ''] = server.resolvedUrls?.local ?? []
    const page = await (await browser.visitor()).newPage()
    await page.goto(address)
    await page.getByRole('radio', { name: /Profile boost/ }).check()
    await page.getByLabel('For whom').fill('@ada')
    await page.getByRole('button', { name: 'Place order' }).press('Enter')
    await page.getByRole('heading', { name: 'Order placed' }).waitFor()
    assert.match(address, /^http:\/\/localhost:\d+\/$/)
  } finally {
    await browser.close()
    await server.close()
  }
})
