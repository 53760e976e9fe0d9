/** Buys in the shop's page in React. What counts is the ledger of the service: one charge for one order. */
import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import axe from 'axe-core'
import type { BrowserContext, Page } from 'playwright-core'
import { complaintsOf, openBrowser } from './browser.ts'
import { openShop, type Shop } from './shop.ts'

let browser: Awaited<ReturnType<typeof openBrowser>>
let shop: Shop
let visitor: BrowserContext
let complaints: string[] = []

before(async () => {
  browser = await openBrowser()
})
after(() => browser?.close())
beforeEach(async () => {
  shop = await openShop()
  visitor = await browser.visitor()
})
afterEach(async () => {
  await visitor.close()
  await shop.close()
  assert.deepEqual(complaints.splice(0), [])
})

async function open(): Promise<Page> {
  const page = await visitor.newPage()
  page.setDefaultTimeout(20_000)
  complaints = complaintsOf(page)
  await page.goto(`${shop.url}/react.html`)
  return page
}

async function fill(page: Page): Promise<void> {
  await page.getByRole('radio', { name: /Profile boost/ }).check()
  await page.getByLabel('For whom').fill('@ada')
  await page.getByLabel('Quantity').fill('2')
}

const heading = (page: Page, name: string) => page.getByRole('heading', { name, exact: true })
const place = (page: Page) => page.getByRole('button', { name: /Place order|Placing your order/ })
const keys = () =>
  shop.sandbox.requests.flatMap(({ method, idempotencyKey }) => (method === 'POST' ? [idempotencyKey] : []))

test('an order whose response is lost is repeated by create() with its key, and charged once', async () => {
  shop.sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'commitThenDrop' } })
  const page = await open()
  await fill(page)
  await place(page).dblclick()
  await heading(page, 'Order placed').waitFor()
  await page.getByText('€995.00').waitFor()
  assert.equal(shop.sandbox.ledger.length, 1)
  assert.equal(keys().length, 2)
  assert.equal(new Set(keys()).size, 1)

  await page.getByRole('button', { name: 'Order something else' }).click()
  await fill(page)
  await place(page).click()
  await heading(page, 'Order placed').waitFor()
  assert.equal(shop.sandbox.ledger.length, 2, 'what was ordered on purpose is another order')
})

test('an order whose every response is lost is checked, also after a reload, until it is known', async () => {
  const stopLosing = shop.sandbox.faults.add({
    match: { operation: 'createOrder' },
    times: Number.POSITIVE_INFINITY,
    action: { type: 'commitThenDrop' },
  })
  const page = await open()
  await fill(page)
  await place(page).click()
  await heading(page, 'We are checking your order').waitFor()
  await page.reload()
  await heading(page, 'We are checking your order').waitFor()
  assert.equal(await place(page).count(), 0)
  stopLosing()
  await heading(page, 'Order placed').waitFor()
  assert.equal(shop.sandbox.ledger.length, 1)
})

test('an order that is refused charges nothing, and the form stays as it was', async () => {
  shop.sandbox.setBalance(shop.sandbox.customerId, 100)
  const page = await open()
  await fill(page)
  await place(page).click()
  await page
    .getByRole('alert')
    .getByText('Your balance does not cover this order. Nothing was charged.')
    .waitFor()
  assert.equal(await page.getByLabel('For whom').inputValue(), '@ada')
  shop.sandbox.setBalance(shop.sandbox.customerId, 100_000)
  await place(page).click()
  await heading(page, 'Order placed').waitFor()
  assert.equal(shop.sandbox.ledger.length, 1)
})

test('axe finds nothing to complain about', async () => {
  const page = await open()
  await fill(page)
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate<{ violations: { id: string }[] }>('axe.run()')
  assert.deepEqual(
    violations.map(({ id }) => id),
    [],
  )
})
