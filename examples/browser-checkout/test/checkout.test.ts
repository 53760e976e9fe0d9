/**
 * Orders in the built shop, mostly by keyboard, while faults happen. Checks the service's ledger:
 * one charge for each order.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import { openProfile } from './browser.ts'
import { fill, heading, open, place, shop, visitor } from './visit.ts'

const charges = (): number => shop.sandbox.ledger.length

/** Presses Tab until an element has the focus. */
async function tabTo(page: Page, role: 'radio' | 'textbox' | 'button', name: RegExp): Promise<void> {
  const wanted = page.getByRole(role, { name })
  for (let presses = 0; presses < 40; presses++) {
    if (await wanted.evaluateAll((found) => found.includes(document.activeElement as HTMLElement))) return
    await page.keyboard.press('Tab')
  }
  assert.fail(`Tab does not reach the ${role} ${name}`)
}

/** Waits until the service has charged an order. The page may not know yet. */
async function charged(): Promise<void> {
  while (charges() === 0) await new Promise((resolve) => setTimeout(resolve, 10))
}

describe('the checkout', () => {
  test('an order can be filled in and placed by keyboard alone', async () => {
    const page = await open()
    await page.getByText('€1,000.00', { exact: true }).waitFor()
    await tabTo(page, 'radio', /Profile boost/)
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowDown')
    assert.equal(await page.getByRole('radio', { name: /Impressions/ }).isChecked(), true)
    await tabTo(page, 'textbox', /For whom/)
    await page.keyboard.type('@ada')
    await tabTo(page, 'textbox', /Quantity/)
    await page.keyboard.press('ArrowUp')
    assert.equal(await page.getByLabel('Quantity').inputValue(), '200')
    await page.getByText('200 × €0.03', { exact: true }).waitFor()
    await page.getByText('€6.00', { exact: true }).waitFor()
    await page.getByText('€994.00', { exact: true }).waitFor()
    await page.keyboard.press('Enter')

    await heading(page, 'Order placed').waitFor()
    assert.equal(
      await heading(page, 'Order placed').evaluate((title) => title === document.activeElement),
      true,
      'the focus is on the outcome',
    )
    const [charge] = shop.sandbox.ledger
    await page.locator('#ending').getByText(String(charge?.orderId)).waitFor()
    await page.locator('#balance').getByText('€994.00').waitFor()
    assert.deepEqual([charges(), charge?.amount, JSON.parse(charge?.body ?? '{}').quantity], [1, 600, 200])

    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await heading(page, 'Your order').waitFor()
    assert.equal(await page.getByLabel('For whom').inputValue(), '')
    await page.getByLabel('For whom').fill('@bob')
    await page.getByLabel('For whom').press('Enter')
    await heading(page, 'Order placed').waitFor()
    assert.equal(charges(), 2, 'a second order on purpose is charged separately')
    await page.locator('#orders li').nth(1).waitFor()
  })

  test('an order accepts only quantities within the limits and steps of its service', async () => {
    const page = await open()
    await page.getByRole('radio', { name: /Review credits/ }).check()
    const quantity = page.getByLabel('Quantity')
    const [fewer, more] = [
      page.getByRole('button', { name: 'Fewer' }),
      page.getByRole('button', { name: 'More', exact: true }),
    ]
    assert.equal(await quantity.inputValue(), '5')
    assert.equal(await fewer.getAttribute('aria-disabled'), 'true')
    await fewer.press('Enter')
    assert.equal(await quantity.inputValue(), '5')
    await more.press('Enter')
    assert.equal(await quantity.inputValue(), '15')
    await quantity.fill('103')
    await more.press('Enter')
    assert.equal(await quantity.inputValue(), '105')
    assert.equal(await more.getAttribute('aria-disabled'), 'true')

    await page.getByLabel('For whom').fill('@ada')
    for (const [typed, offers] of [
      ['17', ['Take 15', 'Take 25']],
      ['3', ['Take 5']],
      ['1000', ['Take 105']],
    ] as const) {
      await quantity.fill(typed)
      await quantity.press('Enter')
      await page.getByText('Choose 5 to 105, in steps of 10.').waitFor()
      assert.equal(await quantity.getAttribute('aria-invalid'), 'true')
      assert.deepEqual(await page.locator('#nearest button').allTextContents(), offers)
      assert.equal(await quantity.evaluate((input) => input === document.activeElement), true)
    }
    await page.getByRole('button', { name: 'Take 105' }).press('Enter')
    assert.equal(await quantity.getAttribute('aria-invalid'), null)
    assert.equal(await quantity.inputValue(), '105')
    await quantity.fill('many')
    await quantity.press('Enter')
    await page.getByText('Enter a whole number.').waitFor()
    assert.equal(charges(), 0)

    // Only every second step of this service is a whole number.
    await page.getByRole('button', { name: 'Show more services' }).click()
    await page.getByRole('radio', { name: /Studio day.*1 to 50$/ }).check()
    assert.equal(await quantity.inputValue(), '1')
    assert.equal(await page.getByRole('radio', { name: /Event seat/ }).isDisabled(), true)
  })

  test('the page announces that the balance does not cover an order, and nothing is charged', async () => {
    const page = await open()
    await fill(page, /Brand campaign/, 1)
    await page.getByText('Your balance is short by').waitFor()
    await page.getByText('€49,000.00', { exact: true }).waitFor()
    await place(page).press('Enter')
    await page
      .getByRole('alert')
      .getByText('Your balance does not cover this order. Nothing was charged.')
      .waitFor()
    assert.equal(await place(page).evaluate((button) => button === document.activeElement), true)
    assert.equal(charges(), 0)
    await fill(page, /Profile boost/, 2)
    await place(page).press('Enter')
    await heading(page, 'Order placed').waitFor()
    assert.equal(shop.sandbox.ledger[0]?.amount, 500)
    assert.equal(charges(), 1)
  })

  test('an order is charged once if the button is pressed repeatedly', async () => {
    shop.sandbox.faults.add({
      match: { operation: 'createOrder' },
      action: { type: 'delay', ms: 300, when: 'after' },
    })
    const page = await open()
    await fill(page, /Profile boost/, 1)
    await place(page).dblclick()
    await heading(page, 'Order placed').waitFor()
    assert.equal(charges(), 1)
  })

  test('an order cannot be changed after it was sent', async () => {
    const page = await open()
    await fill(page, /Profile boost/, 3)
    // Click both in one task, before any response can arrive.
    const shown = await page.evaluate(() => {
      const [place, more] = ['#place', '#more-of-it'].map((id) => document.querySelector<HTMLElement>(id))
      place?.click()
      more?.click()
      return document.querySelector<HTMLInputElement>('#quantity')?.value
    })
    assert.equal(shown, '3')
    await heading(page, 'Order placed').waitFor()
    assert.equal(shop.sandbox.ledger[0]?.amount, 750)
  })

  test('an order is charged once if the second click of a double click comes after the response', async () => {
    const page = await open()
    await fill(page, /Profile boost/, 1)
    const box = await place(page).boundingBox()
    const [x, y] = [(box?.x ?? 0) + 20, (box?.y ?? 0) + 20]
    await page.mouse.click(x, y)
    await heading(page, 'Order placed').waitFor()
    await page.mouse.click(x, y)
    await page.locator('#orders li').waitFor()
    assert.equal(charges(), 1)
  })

  test('an order is charged once if the button is pressed in two tabs at the same time', async () => {
    shop.sandbox.faults.add({
      match: { operation: 'createOrder' },
      action: { type: 'delay', ms: 300, when: 'after' },
    })
    const tabs = [await open(), await open()]
    for (const tab of tabs) await fill(tab, /Profile boost/, 1)
    await Promise.all(tabs.map((tab) => place(tab).dispatchEvent('click')))
    await Promise.all(tabs.map((tab) => heading(tab, 'Order placed').waitFor()))
    assert.equal(charges(), 1)
  })

  test('an order is shown in the other tab, where a second order can be placed on purpose', async () => {
    const [one, two] = [await open(), await open()]
    await fill(two, /Profile boost/, 7)
    await fill(one, /Profile boost/, 1)
    await place(one).press('Enter')
    await heading(one, 'Order placed').waitFor()
    await heading(two, 'Order placed').waitFor()
    assert.equal(charges(), 1)
    await two.getByRole('button', { name: 'Order something else' }).press('Enter')
    await fill(two, /Profile boost/, 7)
    await place(two).press('Enter')
    await heading(two, 'Order placed').waitFor()
    assert.deepEqual(
      shop.sandbox.ledger.map(({ amount }) => amount),
      [250, 1750],
    )
  })
})

describe('a lost response', () => {
  test('an order whose response is lost blocks other orders until its outcome is known', async () => {
    const lose = shop.sandbox.faults.add({
      match: { operation: 'createOrder' },
      times: Number.POSITIVE_INFINITY,
      action: { type: 'commitThenDrop' },
    })
    const page = await open()
    await fill(page, /Profile boost/, 3)
    await place(page).press('Enter')
    await heading(page, 'We are checking your order').waitFor()
    await page.getByText('may have been placed and charged, or not. Please do not order it again').waitFor()
    await page.locator('#orders').getByText('Being checked').waitFor()
    assert.equal(await place(page).isVisible(), false)
    // A tab that is opened now shows the same.
    const other = await open()
    await heading(other, 'We are checking your order').waitFor()
    assert.equal(await place(other).isVisible(), false)
    lose()
    for (const tab of [page, other]) {
      await heading(tab, 'Order placed').waitFor()
      await tab.locator('#orders').getByText('Placed', { exact: true }).waitFor()
    }
    assert.equal(charges(), 1)
  })

  test('after a tab crash, the next page settles the order', async () => {
    shop.sandbox.faults.add({
      match: { operation: 'createOrder' },
      action: { type: 'stall', commit: true },
    })
    const page = await open()
    await fill(page, /Profile boost/, 3)
    await place(page).press('Enter')
    await charged()
    const crashed = page.waitForEvent('crash')
    const session = await visitor.newCDPSession(page)
    session.send('Page.crash').catch(() => {})
    await crashed

    const next = await open()
    await heading(next, 'Order placed').waitFor()
    await next.locator('#ending').getByText(String(shop.sandbox.ledger[0]?.orderId)).waitFor()
    await next.locator('#ending').getByText('€7.50').waitFor()
    assert.equal(await next.locator('#orders li').count(), 1)
    assert.equal(charges(), 1)

    // The person has seen the outcome, so the page after a reload is for the next order.
    await next.reload()
    await next.locator('#orders').getByText('Placed', { exact: true }).waitFor()
    await heading(next, 'Your order').waitFor()
    assert.equal(charges(), 1)
  })

  test('after a kill, the next browser settles the order, even if the service is unreachable at first', async () => {
    shop.sandbox.faults.add({
      match: { operation: 'createOrder' },
      action: { type: 'stall', commit: true },
    })
    const folder = await mkdtemp(join(tmpdir(), 'shop-profile-'))
    let second: BrowserContext | undefined
    try {
      const first = await openProfile(folder)
      const page = await open('/', first)
      await fill(page, /Profile boost/, 3)
      await place(page).press('Enter')
      await charged()
      const gone = new Promise((resolve) => first.once('close', resolve))
      const session = await first.newCDPSession(page)
      session.send('Browser.crash').catch(() => {})
      await gone

      const back = shop.sandbox.faults.add({
        match: { operation: 'createOrder' },
        times: Number.POSITIVE_INFINITY,
        action: { type: 'drop' },
      })
      second = await openProfile(folder)
      const next = await open('/', second)
      await heading(next, 'We are checking your order').waitFor()
      assert.equal(charges(), 1)
      back()
      await heading(next, 'Order placed').waitFor()
      await next.locator('#balance').getByText('€992.50').waitFor()
      assert.equal(charges(), 1)
    } finally {
      await second?.close()
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    }
  })

  test('an order that was never sent is placed when the browser is online again', async () => {
    const page = await open()
    await fill(page, /Profile boost/, 3)
    await visitor.setOffline(true)
    await place(page).press('Enter')
    await heading(page, 'We are checking your order').waitFor()
    // The order was never sent, but the page cannot know that, so it must claim neither.
    await page.getByText('Your order may have been placed and charged, or not.').waitFor()
    assert.equal(charges(), 0)
    await visitor.setOffline(false)
    await heading(page, 'Order placed').waitFor()
    assert.equal(charges(), 1)
  })
})
