/**
 * Buys in the built shop, mostly by keyboard, and makes things go wrong in the middle of it. What counts is the ledger of the
 * service: one charge for one order.
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
  assert.fail(`${role} ${name} cannot be reached with Tab`)
}

/** Waits until the service has charged, whatever the page knows of it. */
async function charged(): Promise<void> {
  while (charges() === 0) await new Promise((resolve) => setTimeout(resolve, 10))
}

describe('an order', () => {
  test('is filled in, placed and read back with nothing but the keyboard', async () => {
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
      'the focus is where it goes on',
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
    assert.equal(charges(), 2, 'what was ordered on purpose is another order')
    await page.locator('#orders li').nth(1).waitFor()
  })

  test('keeps to the bounds and the step of its service', async () => {
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

    // Only half of the steps of this one are whole.
    await page.getByRole('button', { name: 'Show more services' }).click()
    await page.getByRole('radio', { name: /Studio day.*1 to 50$/ }).check()
    assert.equal(await quantity.inputValue(), '1')
    assert.equal(await page.getByRole('radio', { name: /Event seat/ }).isDisabled(), true)
  })

  test('that the balance does not cover says so before and after, and charges nothing', async () => {
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

  test('is one, however often the button is pressed', async () => {
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

  test('does not change any more once it is on its way', async () => {
    const page = await open()
    await fill(page, /Profile boost/, 3)
    // In one go, before any response can be there.
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

  test('is one where a double click is slower than the response', async () => {
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

  test('is one, pressed in two tabs at once', async () => {
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

  test('shows in the other tab, and another one placed there on purpose is another', async () => {
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

describe('an order whose response is lost', () => {
  test('is checked until it is known, and cannot be ordered again meanwhile', async () => {
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
    // In a tab that is opened now, too.
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

  test('is found by the next page after its tab has crashed in the middle', async () => {
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

    // The person was told; the page after that is for the next order.
    await next.reload()
    await next.locator('#orders').getByText('Placed', { exact: true }).waitFor()
    await heading(next, 'Your order').waitFor()
    assert.equal(charges(), 1)
  })

  test('is found by the next browser after this one was killed, while the service cannot be reached at first', async () => {
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

  test('is placed when the browser is online again, if it never left', async () => {
    const page = await open()
    await fill(page, /Profile boost/, 3)
    await visitor.setOffline(true)
    await place(page).press('Enter')
    await heading(page, 'We are checking your order').waitFor()
    // Nothing left this browser, which it cannot know: it must claim neither.
    await page.getByText('Your order may have been placed and charged, or not.').waitFor()
    assert.equal(charges(), 0)
    await visitor.setOffline(false)
    await heading(page, 'Order placed').waitFor()
    assert.equal(charges(), 1)
  })
})
