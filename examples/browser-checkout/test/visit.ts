/**
 * Importing this file sets up one browser for the tests of a file. Each test has its own shop and
 * visitor, and its pages must log no errors or warnings.
 */
import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach } from 'node:test'
import type { BrowserContext, Locator, Page } from 'playwright-core'
import { complaintsOf, openBrowser } from './browser.ts'
import { openShop, type Shop } from './shop.ts'

export let shop: Shop
export let visitor: BrowserContext
let browser: Awaited<ReturnType<typeof openBrowser>>
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

/** Opens a page of the shop, and waits until it shows the services. */
export async function open(path = '/', context: BrowserContext = visitor): Promise<Page> {
  const page = await context.newPage()
  page.setDefaultTimeout(20_000)
  complaints = complaintsOf(page)
  await page.goto(shop.url + path)
  await page.getByRole('radio', { name: /Profile boost/ }).waitFor()
  return page
}

/** Fills in the form. */
export async function fill(page: Page, service: RegExp, quantity: number): Promise<void> {
  await page.getByRole('radio', { name: service }).check()
  await page.getByLabel('For whom').fill('@ada')
  await page.getByLabel('Quantity').fill(String(quantity))
}

export const heading = (page: Page, name: string): Locator => page.getByRole('heading', { name, exact: true })
export const place = (page: Page): Locator =>
  page.getByRole('button', { name: /Place order|Placing your order/ })
