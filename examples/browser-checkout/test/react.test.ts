/** Orders in the React page. Checks the service's ledger: one charge for each order. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import axe from 'axe-core'
import { fill, heading, open, place, shop } from './visit.ts'

const keys = () =>
  shop.sandbox.requests.flatMap(({ method, idempotencyKey }) => (method === 'POST' ? [idempotencyKey] : []))

test('an order whose response is lost is repeated by create() with its key, and charged once', async () => {
  shop.sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'commitThenDrop' } })
  const page = await open('/react.html')
  await fill(page, /Profile boost/, 2)
  await place(page).dblclick()
  await heading(page, 'Order placed').waitFor()
  await page.getByText('€995.00').waitFor()
  assert.equal(shop.sandbox.ledger.length, 1)
  assert.equal(keys().length, 2)
  assert.equal(new Set(keys()).size, 1)

  await page.getByRole('button', { name: 'Order something else' }).click()
  await fill(page, /Profile boost/, 2)
  await place(page).click()
  await heading(page, 'Order placed').waitFor()
  assert.equal(shop.sandbox.ledger.length, 2, 'a second order on purpose is charged separately')
})

test('an order whose responses are all lost is checked until its outcome is known, even after a reload', async () => {
  const stopLosing = shop.sandbox.faults.add({
    match: { operation: 'createOrder' },
    times: Number.POSITIVE_INFINITY,
    action: { type: 'commitThenDrop' },
  })
  const page = await open('/react.html')
  await fill(page, /Profile boost/, 2)
  await place(page).click()
  await heading(page, 'We are checking your order').waitFor()
  await page.reload()
  await heading(page, 'We are checking your order').waitFor()
  assert.equal(await place(page).count(), 0)
  stopLosing()
  await heading(page, 'Order placed').waitFor()
  assert.equal(shop.sandbox.ledger.length, 1)
})

test('a refused order charges nothing, and the form keeps its values', async () => {
  shop.sandbox.setBalance(shop.sandbox.customerId, 100)
  const page = await open('/react.html')
  await fill(page, /Profile boost/, 2)
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

test('axe finds no problems in the React page', async () => {
  const page = await open('/react.html')
  await fill(page, /Profile boost/, 2)
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate<{ violations: { id: string }[] }>('axe.run()')
  assert.deepEqual(
    violations.map(({ id }) => id),
    [],
  )
})
