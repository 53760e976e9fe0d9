/**
 * Checks the accessibility and layout of the built page in every state, in light and dark colours,
 * on wide and narrow screens.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import axe, { type AxeResults, type RunOptions } from 'axe-core'
import type { Page } from 'playwright-core'
import { complaintsOf, openBrowser } from './browser.ts'
import { openShop, type Shop } from './shop.ts'

let browser: Awaited<ReturnType<typeof openBrowser>>
before(async () => {
  browser = await openBrowser()
})
after(() => browser?.close())

for (const colorScheme of ['light', 'dark'] as const)
  for (const width of [1280, 375])
    describe(`the page in ${colorScheme} colours, ${width} pixels wide`, () => {
      let shop: Shop
      let page: Page
      let complaints: string[]

      before(async () => {
        shop = await openShop()
        const visitor = await browser.visitor({ colorScheme, viewport: { width, height: 812 } })
        page = await visitor.newPage()
        page.setDefaultTimeout(20_000)
        complaints = complaintsOf(page)
        await page.goto(shop.url)
        await page.getByRole('radio', { name: /Profile boost/ }).waitFor()
        await page.locator('#balance').getByText('€1,000.00').waitFor()
      })
      after(async () => {
        await page?.context().close()
        await shop?.close()
      })

      async function looksRight(): Promise<void> {
        assert.deepEqual(await accessibilityProblems(page), [])
        assert.deepEqual(await tooWide(page), [])
        assert.deepEqual(complaints, [])
      }

      /** Checks that the outcome is visible without scrolling, and announced. */
      async function isShown(heading: string): Promise<void> {
        const title = page.getByRole('heading', { name: heading })
        await title.waitFor()
        const { y = -1, height = 0 } = (await title.boundingBox()) ?? {}
        assert.ok(y >= 0 && y + height <= 812, `${heading} is at ${y}`)
        const said = await page.getByRole('status').textContent()
        const focused = await title.evaluate((element) => element === document.activeElement)
        assert.ok(focused || said?.startsWith(heading), `${heading} is not announced`)
      }

      /** Checks that no service can be chosen, and that the page shows this reason. */
      async function isClosed(reason: string): Promise<void> {
        const services = page.getByRole('group', { name: 'Services' })
        assert.equal(await services.getByRole('radio', { disabled: false }).count(), 0)
        const description = await services.evaluate((group) => group.getAttribute('aria-describedby') ?? '')
        assert.equal(await page.locator(`#${description}`).textContent(), reason)
      }

      async function order(target: string): Promise<void> {
        await page.getByLabel('For whom').fill(target)
        await page.getByRole('button', { name: 'Place order' }).press('Enter')
      }

      test('the page is accessible before a service is chosen, and with the whole catalogue', async () => {
        await looksRight()
        await page.getByRole('button', { name: 'Place order' }).press('Enter')
        await page.getByText('Choose a service first.').waitFor()
        await page.getByRole('button', { name: 'Show more services' }).press('Enter')
        const next = page.getByRole('radio', { name: /Studio day/ })
        await next.waitFor()
        await page.getByRole('button', { name: 'Show more services' }).waitFor({ state: 'hidden' })
        assert.equal(await next.evaluate((radio) => radio === document.activeElement), true)
        await looksRight()
      })

      test('the page is accessible with mistakes in the form', async () => {
        await page.getByRole('radio', { name: /Impressions/ }).check()
        await page.getByLabel('Quantity').fill('150')
        await page.getByLabel('Quantity').press('Enter')
        await page.getByText('Enter the handle of the recipient.').waitFor()
        await page.getByText('Choose 100 to 100,000, in steps of 100.').waitFor()
        assert.equal(
          await page.getByLabel('For whom').evaluate((input) => input === document.activeElement),
          true,
          'the focus is on the first mistake',
        )
        await looksRight()
        await page.getByRole('button', { name: 'Take 100', exact: true }).press('Enter')
      })

      test('the page is accessible with a refused order', async () => {
        shop.sandbox.setBalance('cus_personal', 1)
        await page.getByRole('radio', { name: /Brand campaign/ }).check()
        await page.getByLabel('Quantity').fill('10')
        await order('@ada')
        await page.getByRole('alert').getByText('Nothing was charged.').waitFor()
        await looksRight()
        for (const amount of await page.locator('#preview dd').all())
          assert.ok(((await amount.boundingBox())?.height ?? 99) < 30, 'an amount is broken in two')
        shop.sandbox.setBalance('cus_personal', 1_234_567_890)
        await page.getByRole('radio', { name: /Impressions/ }).check()
      })

      test('the page is accessible with an order that is being checked, then placed', async () => {
        const lose = shop.sandbox.faults.add({
          match: { operation: 'createOrder' },
          times: Number.POSITIVE_INFINITY,
          action: { type: 'commitThenDrop' },
        })
        await order(`@${'long-handle-'.repeat(12)}`)
        await isShown('We are checking your order')
        await isClosed('You can order something else once we know the outcome of your order.')
        await page.locator('#orders').getByText('Being checked').waitFor()
        await looksRight()
        await page.reload()
        await page.getByRole('radio', { name: /Profile boost/ }).waitFor()
        await isShown('We are checking your order')
        await isClosed('You can order something else once we know the outcome of your order.')
        lose()
        await isShown('Order placed')
        await isClosed('Press “Order something else” to choose again.')
        await page.locator('#orders').getByText('Placed').waitFor()
        await looksRight()
        await page.getByRole('button', { name: 'Order something else' }).press('Enter')
      })

      test('the page is accessible with an order whose outcome only a person can find out', async () => {
        // The service may refuse the second attempt because the first was charged.
        shop.sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'drop' } })
        shop.sandbox.faults.add({
          match: { operation: 'createOrder' },
          times: Number.POSITIVE_INFINITY,
          action: { type: 'status', status: 402, code: 'PAYMENT_REQUIRED' },
        })
        await page.getByRole('radio', { name: /Impressions/ }).check()
        await order('@bob')
        await page.getByRole('heading', { name: 'Please contact us' }).waitFor()
        await page.locator('#ending').getByText('Idempotency-Key').waitFor()
        await page.locator('#orders').getByText('Contact us').waitFor()
        await isShown('Please contact us')
        await looksRight()
        for (const id of await page.locator('code').all())
          assert.ok(((await id.boundingBox())?.height ?? 99) < 30, 'an id is broken in two')
        await page.getByRole('button', { name: 'Order something else' }).press('Enter')
        // That order does not prevent another order, even after a reload.
        shop.sandbox.faults.clear()
        await page.getByRole('radio', { name: /Impressions/ }).check()
        await order('@carl')
        await page.getByRole('heading', { name: 'Order placed' }).waitFor()
        await page.reload()
        await page.getByRole('radio', { name: /Impressions/ }).check()
        await order('@dora')
        await page.getByRole('heading', { name: 'Order placed' }).waitFor()
      })

      test('the page has a policy that blocks markup from strings and inline styles', async () => {
        const violated = await page.evaluate(async () => {
          const directives: string[] = []
          document.addEventListener('securitypolicyviolation', ({ effectiveDirective }) =>
            directives.push(effectiveDirective),
          )
          const script = document.createElement('p')
          try {
            script.innerHTML = '<b>text</b>'
          } catch {
            directives.push('refused')
          }
          script.setAttribute('style', 'color: red')
          await new Promise((resolve) => setTimeout(resolve))
          return directives.toSorted()
        })
        assert.deepEqual(violated, ['refused', 'require-trusted-types-for', 'style-src-attr'])
      })
    })

/** Elements whose content is wider than the element. */
async function tooWide(page: Page): Promise<readonly string[]> {
  return await page.evaluate(() =>
    [...document.querySelectorAll('html, main, section, form, li, .card, dl, button')]
      .filter((element) => element.checkVisibility() && element.scrollWidth > element.clientWidth + 1)
      .map((element) => element.outerHTML.slice(0, 80)),
  )
}

/** The problems that axe finds, including checks that it could not decide. */
async function accessibilityProblems(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe.source)
  const options: RunOptions = {
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
  }
  const { violations, incomplete, passes } = await page.evaluate(
    (given): Promise<AxeResults> => Reflect.get(window, 'axe').run(document, given),
    options,
  )
  assert.ok(passes.some(({ id }) => id === 'color-contrast'))
  return [...violations, ...incomplete].flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
  )
}
