/**
 * Tests the sandbox's live page in a real browser, mostly by keyboard:
 *
 * node --test page.check.ts
 *
 * COMMAND is the command to start (default: the source), CHROMIUM the browser (default:
 * /usr/bin/chromium). With SCREENSHOTS=docs/images it also takes the pictures of that folder.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { AxeResults, RunOptions } from 'axe-core'
import axe from 'axe-core'
import { type Browser, chromium, type Page } from 'playwright-core'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const command = resolve(root, process.env['COMMAND'] ?? 'src/command/main.ts')
const screenshots = process.env['SCREENSHOTS'] && resolve(root, process.env['SCREENSHOTS'])

let browser: Browser
let server: ChildProcess
let url = ''
let apiKey = ''

async function start(port = '0'): Promise<void> {
  server = spawn(process.execPath, [command, 'sandbox', '--port', port], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  assert.ok(server.stdout)
  const lines = createInterface(server.stdout)
  for await (const line of lines) {
    const [, address, key] = /listening on (\S+) \(API key: (\S+)\)/.exec(line) ?? []
    assert.ok(address !== undefined && key !== undefined, line)
    url = address
    apiKey = key
    break
  }
  server.stdout.resume()
}

before(async () => {
  await start()
  browser = await chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    args: [
      ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
      ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
    ],
  })
})
after(async () => {
  await browser?.close()
  server?.kill()
})
beforeEach(async () => {
  await control('POST', '/reset')
  await control('PUT', '/behaviour', {})
})
afterEach(async () => {
  for (const context of browser.contexts()) await context.close()
  assert.deepEqual(complaints.splice(0), [])
})

async function control(method: string, path: string, body?: unknown): Promise<unknown> {
  const response = await fetch(`${url}/__sandbox${path}`, {
    method,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  assert.ok(response.ok, `${method} ${path}: ${response.status}`)
  return response.json()
}

function order(key: string, reference: string, serviceId = 'svc_standard'): Promise<number | string> {
  return fetch(`${url}/v1/orders`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${apiKey}`,
      'content-type': 'application/json',
      'idempotency-key': key,
    },
    body: JSON.stringify({
      serviceId,
      target: '@ada',
      quantity: 2,
      metadata: { externalOrderId: reference },
    }),
  }).then(
    (response) => response.status,
    () => 'lost',
  )
}

/** Script errors and policy violations that the browser reports during a test. */
const complaints: string[] = []

/** Opens the page. Complaints that match `expected` are not failures. */
async function open(options: Parameters<Browser['newPage']>[0] = {}, expected = /^$/): Promise<Page> {
  const page = await browser.newPage({ locale: 'en-GB', reducedMotion: 'reduce', ...options })
  page.setDefaultTimeout(20_000)
  const complain = (text: string): void => {
    if (!expected.test(text)) complaints.push(text)
  }
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complain(message.text())
  })
  page.on('pageerror', (error) => complain(String(error)))
  await page.goto(url)
  await page.getByText('live', { exact: true }).waitFor()
  return page
}

/**
 * Presses Tab until the element has the focus. Elements that Tab does not reach cannot be used by
 * keyboard.
 */
async function tabTo(page: Page, name: string): Promise<void> {
  for (let presses = 0; presses < 80; presses++) {
    await page.keyboard.press('Tab')
    const focused = await page.evaluate(() => {
      const element = document.activeElement
      const label = element?.closest('label')?.querySelector('span')?.textContent
      return element?.getAttribute('aria-label') ?? label ?? element?.textContent
    })
    if (focused === name) return
  }
  assert.fail(`Tab does not reach ${name}`)
}

const logRow = (page: Page, number: number) => page.locator(`#log-rows > li[data-number="${number}"]`)

describe('the live page', () => {
  test('the page switches a fault on by keyboard, and shows the lost response', async () => {
    const page = await open()
    await tabTo(page, 'Charge, then lose the response')
    const toggle = page.getByRole('switch', { name: 'Charge, then lose the response' })
    assert.equal(await toggle.isChecked(), false)
    await page.keyboard.press('Space')
    await page.getByText('acted 0 of 1, matched 0').waitFor()
    assert.equal(await toggle.isChecked(), true)

    assert.equal(await order('key-1', 'shop-1'), 'lost')
    await logRow(page, 1).getByText('lost', { exact: true }).waitFor()
    await logRow(page, 1).getByText('charged', { exact: true }).waitFor()
    await logRow(page, 1).getByText('commitThenDrop', { exact: true }).waitFor()
    await page.getByText('acted 1 of 1, matched 1').waitFor()
    assert.equal(await toggle.isChecked(), false, 'the fault applied to the next request only')

    assert.equal(await order('key-1', 'shop-1'), 201)
    await logRow(page, 2).getByText('201', { exact: true }).waitFor()
    assert.equal(await logRow(page, 2).getByText('charged').count(), 0)
    await logRow(page, 2).getByText('same key as No. 1', { exact: true }).waitFor()
    assert.equal(await logRow(page, 1).getByText('same key').count(), 0)
    assert.equal(await page.locator('#ledger tbody tr').count(), 1, 'one charge for two requests')
    assert.equal(await page.locator('#announcement').textContent(), 'POST /v1/orders: 201')
  })

  test('the page switches a fault on for every request, and off again', async () => {
    const page = await open()
    await page.getByRole('radio', { name: 'every request' }).press('Space')
    const toggle = page.getByRole('switch', { name: '502 from a gateway' })
    await toggle.press('Space')
    await page.getByText('acted 0, always on, matched 0').waitFor()
    assert.deepEqual([await order('a', 'r'), await order('a', 'r')], [502, 502])
    await page.getByText('acted 2, always on, matched 2').waitFor()
    assert.equal(await toggle.isChecked(), true)
    await toggle.press('Space')
    await page.waitForFunction(() => document.querySelectorAll('#rules li').length === 0)
    assert.equal(await order('a', 'r'), 201)
  })

  test('the page asks for confirmation before a reset', async () => {
    const page = await open()
    assert.equal(await order('key-1', 'shop-1'), 201)
    await logRow(page, 1).waitFor()
    const reset = page.getByRole('button', { name: 'Reset everything' })
    const press = async (reply: 'accept' | 'dismiss'): Promise<void> => {
      const [dialog] = await Promise.all([
        page.waitForEvent('dialog', { timeout: 5000 }),
        reset.press('Enter', { noWaitAfter: true }),
        page.waitForEvent('dialog').then((asked) => asked[reply]()),
      ])
      assert.match(dialog.message(), /^Reset everything\? Orders, charges/)
    }
    await press('dismiss')
    assert.deepEqual(await control('GET', '/requests').then((rows) => Array.isArray(rows) && rows.length), 1)
    await press('accept')
    await logRow(page, 1).waitFor({ state: 'detached' })
  })

  test('the page shows an order in every table while it is processed', async () => {
    const page = await open()
    assert.equal(await page.locator('#orders tbody tr').count(), 0)
    await control('POST', '/faults', { action: { type: 'delay', ms: 600_000, when: 'during' } })
    const pending = order('key-1', 'shop-1')
    await logRow(page, 1).getByText('running', { exact: true }).waitFor()
    await page.locator('#keys').getByText('still in progress').waitFor()
    assert.equal(await order('key-2', 'shop-2'), 201)
    await logRow(page, 2).getByText('charged', { exact: true }).waitFor()
    await page.locator('#wallets').getByText('€9,995.00', { exact: true }).waitFor()
    await page.locator('#orders').getByText('shop-2', { exact: true }).waitFor()
    await page.locator('#ledger').getByText('key-2', { exact: true }).waitFor()
    await page.locator('#keys').getByText('the same order').waitFor()
    const id = (await page.locator('#orders tbody th').textContent()) ?? ''
    await control('PUT', `/orders/${id}/status`, { status: 'completed' })
    await page.locator('#orders').getByText('completed', { exact: true }).waitFor()
    await control('POST', '/reset')
    await page.locator('#wallets').getByText('€9,995.00', { exact: true }).waitFor({ state: 'detached' })
    assert.equal(await page.locator('#log-rows > li').count(), 0)
    assert.equal(await page.locator('#orders tbody tr').count(), 0)
    pending.catch(() => {})
  })

  for (const width of [1280, 390])
    test(`Tab reaches every control of the page, and the focus is visible, at ${width} pixels`, async () => {
      const page = await open({ viewport: { width, height: 844 } })
      await fill(page)
      for (const summary of await page.locator('summary').all()) await summary.press('Enter')
      const controls = await page.evaluate(() => {
        const found = document.querySelectorAll('a, button, input, select, textarea, summary, [tabindex="0"]')
        // Tab reaches only the chosen button of a radio group. The arrow keys reach the others.
        const reachable = [...found].filter(
          (element) => element.checkVisibility() && !element.matches('input[type="radio"]:not(:checked)'),
        )
        for (const [index, element] of reachable.entries())
          element.setAttribute('data-control', String(index))
        return reachable.length
      })
      assert.ok(controls > 25, String(controls))
      const reached = new Set<number>()
      for (let presses = 0; presses < controls + 5; presses++) {
        await page.keyboard.press('Tab')
        const focused = await page.evaluate(() => {
          const element = document.activeElement
          if (element === null || element === document.body) return null
          const { outlineStyle, outlineWidth } = getComputedStyle(element)
          const { top, bottom, left, right } = element.getBoundingClientRect()
          return {
            number: Number(element.getAttribute('data-control') ?? -1),
            html: element.outerHTML.slice(0, 80),
            outlined: outlineStyle !== 'none' && Number.parseFloat(outlineWidth) >= 2,
            visible: bottom > 0 && top < innerHeight && right > 0 && left < innerWidth,
          }
        })
        if (focused === null) continue
        assert.ok(focused.outlined && focused.visible, `${focused.html}: ${JSON.stringify(focused)}`)
        reached.add(focused.number)
      }
      const missed = await page.evaluate(
        (numbers) =>
          [...document.querySelectorAll('[data-control]')]
            .filter((element) => !numbers.includes(Number(element.getAttribute('data-control'))))
            .map((element) => element.outerHTML.slice(0, 80)),
        [...reached],
      )
      assert.deepEqual(missed, [])
    })

  for (const width of [1280, 800, 390])
    test(`the page has room for the longest keys and references at ${width} pixels`, async () => {
      const page = await open({ viewport: { width, height: 900 } })
      assert.equal(await order('k'.repeat(255), 'r'.repeat(300)), 201)
      await page.locator('#ledger').getByText('r'.repeat(300), { exact: true }).waitFor()
      const tooWide = await page.evaluate(() =>
        [...document.querySelectorAll('html, .panel, #log')]
          .filter((element) => element.scrollWidth > element.clientWidth)
          .map((element) => element.querySelector('h2')?.textContent ?? element.tagName),
      )
      assert.deepEqual(tooWide, [])
      const amount = page.locator('#ledger td.number .cell').first()
      assert.ok(((await amount.boundingBox())?.height ?? 99) < 30, 'amounts are squeezed')
    })

  test('the page shows changes made elsewhere', async () => {
    const page = await open()
    await control('POST', '/faults', {
      match: { operation: 'createOrder' },
      action: { type: 'commitThenDrop' },
    })
    const toggle = page.getByRole('switch', { name: 'Charge, then lose the response' })
    await page.waitForFunction(() => document.querySelector<HTMLInputElement>('#toggles input')?.checked)
    assert.equal(await toggle.isChecked(), true)
    await control('PUT', '/behaviour', { preset: 'forgetful' })
    await page.waitForFunction(
      () => document.querySelector<HTMLSelectElement>('#preset')?.value === 'forgetful',
    )
    await control('PATCH', '/behaviour', { maxLimit: 3 })
    await page.waitForFunction(() => document.querySelector<HTMLSelectElement>('#preset')?.value === '')
    await control('POST', '/reset')
    await page.waitForFunction(
      () => document.querySelector<HTMLSelectElement>('#preset')?.value === 'default',
    )
  })

  test('the page changes the preset, tops up a wallet and adds a rule by keyboard', async () => {
    const page = await open({}, /400 \(Bad Request\)/)
    await page.getByLabel('Preset').focus()
    await page.keyboard.type('rfc')
    await page.waitForFunction(() => document.querySelector('#switches')?.textContent?.includes('"problem"'))

    await page.getByLabel('Add minor units to cus_personal').fill('-999900')
    await page.keyboard.press('Enter')
    await page.locator('#wallets').getByText('€1.00', { exact: true }).waitFor()
    assert.equal(await order('k', 'r'), 402)
    await logRow(page, 1).getByText('402', { exact: true }).waitFor()

    await page.getByText('Write a rule').press('Enter')
    const rule = page.getByLabel('Fault rule, JSON')
    await rule.fill('[{ "action": { "type": "drip" } }]')
    await page.getByRole('button', { name: 'Add rule' }).press('Enter')
    await page.locator('#rule-problem').getByText('$[0].action.type: expected').waitFor()
    await rule.fill('{ "match": { "method": "GET" }, "action": { "type": "status", "status": 429 } }')
    await page.getByRole('button', { name: 'Add rule' }).press('Enter')
    await page.locator('#rules').getByText('method GET').waitFor()
    assert.equal(await page.locator('#rule-problem').isVisible(), false)
    await page.getByRole('button', { name: 'Remove rule' }).press('Enter')
    await page.waitForFunction(() => document.querySelectorAll('#rules li').length === 0)
  })

  test('the page shows received data as text, never as markup', async () => {
    const page = await open()
    const markup = '<img src=x onerror=alert(1)><script>alert(2)</script>'
    await order('k', markup)
    await page.locator('#ledger').getByText(markup, { exact: true }).waitFor()
    await logRow(page, 1).locator('summary').click()
    await page.locator('#log pre').getByText('onerror=alert(1)').first().waitFor()
    assert.equal(await page.locator('main img, main script').count(), 0)
  })

  test('the page shows headers and bodies of a request and its response, even a lost one', async () => {
    const page = await open()
    await control('POST', '/faults', { action: { type: 'commitThenDrop' } })
    assert.equal(await order('key-1', 'shop-1'), 'lost')
    const row = logRow(page, 1)
    await row.locator('summary').click()
    await row.getByText('idempotency-key: key-1').waitFor()
    await row.getByText('"externalOrderId": "shop-1"').first().waitFor()
    await row.getByText('content-type: application/json').last().waitFor()
    const [, response = ''] = await row.locator('pre').allTextContents()
    assert.match(response, /^content-type: application\/json[\s\S]*\n\n\{\n {2}"id": "ord_/)
    assert.equal((await row.textContent())?.includes(apiKey), false)

    assert.equal(await order('key-1', 'shop-1'), 201)
    await logRow(page, 2).waitFor()
    assert.equal(await row.locator('details[open]').count(), 1, 'what was opened stays open')
  })

  test('the page keeps its rows when others are added, changed or removed', async () => {
    const page = await open()
    await control('POST', '/faults', { times: 'always', match: { method: 'PUT' }, action: { type: 'drop' } })
    await control('POST', '/faults', { times: 'always', action: { type: 'delay', ms: 1 } })
    assert.equal(await order('key-1', 'shop-1'), 201)
    await logRow(page, 1).getByText('charged', { exact: true }).waitFor()
    await page.locator('#keys').getByText('the same order').waitFor()
    await page.getByText('acted 1, always on').waitFor()
    const rows = await page.evaluateHandle(() => [
      ...document.querySelectorAll('tbody tr, #log-rows > li, #rules li, .wallet, #switches > *'),
    ])
    const gone = (): Promise<readonly (string | null)[]> =>
      rows.evaluate((before) =>
        before.filter((row) => !row.isConnected).map(({ textContent }) => textContent),
      )
    const remove = page.getByRole('button', { name: /^Remove rule \d+, delay$/ })
    await remove.focus()
    const isFocused = (): Promise<boolean> => remove.evaluate((button) => button === document.activeElement)

    assert.equal(await order('key-2', 'shop-2'), 201)
    const [id = ''] = await page.locator('#orders tbody th').allTextContents()
    await control('PUT', `/orders/${id}/status`, { status: 'completed' })
    await control('PATCH', '/behaviour', { maxLimit: 3 })
    await page.locator('#orders').getByText('completed', { exact: true }).waitFor()
    await page.locator('#switches').getByText('3', { exact: true }).waitFor({ state: 'attached' })
    await page.getByText('acted 2, always on').waitFor()
    assert.deepEqual(await gone(), [])
    assert.equal(await isFocused(), true, 'the focus stays on the button of a rule that has acted')
    await page
      .getByRole('button', { name: /^Remove rule \d+, drop$/ })
      .evaluate((other: HTMLElement) => other.click())
    await page.waitForFunction(() => document.querySelectorAll('#rules li').length === 1)
    assert.equal((await gone()).length, 1)
    assert.equal(await isFocused(), true, 'the focus stays where another rule has gone')
    await remove.press('Enter')
    await page.waitForFunction(() => document.querySelectorAll('#rules li').length === 0)
  })

  test('the page filters requests, even new ones, by anything in them, and says when none matches', async () => {
    const page = await open()
    await order('key-1', 'shop-1')
    await fetch(`${url}/v1/balance`, { headers: { 'x-trace': 'trace-of-2' } })
    await logRow(page, 2).waitFor()
    const visible = () =>
      page
        .locator('#log-rows > li:visible')
        .evaluateAll((rows) => rows.map((row) => row.getAttribute('data-number')))
    for (const [text, numbers] of [
      ['balance', ['2']],
      ['401', ['2']],
      ['trace-of-2', ['2']],
      ['SHOP-1', ['1']],
      ['key-1', ['1']],
      ['key_personal', ['1']],
      ['charged', ['1']],
      ['"id":"ord_', ['1']],
      ['"status": "pending"', ['1']],
      ['post 201', ['1']],
      ['nothing like it', []],
      ['', ['2', '1']],
    ] as const) {
      await page.getByLabel('Filter').fill(text)
      assert.deepEqual(await visible(), numbers, text)
      const none = text === 'nothing like it' ? 'No request matches “nothing like it”.' : ''
      assert.equal(await page.locator('#log-no-match').textContent(), none)
    }
    await page.getByLabel('Filter').fill('shop')
    await order('key-3', 'shop-3')
    await fetch(`${url}/v1/balance`)
    await page.waitForFunction(() => document.querySelectorAll('#log-rows > li').length === 4)
    assert.deepEqual(await visible(), ['3', '1'])
    assert.equal(await page.locator('#log-count').textContent(), '2 of 4')
  })

  for (const width of [1280, 800])
    test(`a request and its response are on one line, and JSON is never broken in a word, at ${width} pixels`, async () => {
      const page = await open({ viewport: { width, height: 900 } })
      await fill(page)
      const lines = page.locator('#log-rows .line')
      for (const box of await Promise.all((await lines.all()).map((line) => line.boundingBox())))
        assert.ok((box?.height ?? 99) <= 46, JSON.stringify(box))
      const word = 'w'.repeat(200)
      await order('key-long', word)
      const row = page.locator('#log-rows > li').first()
      await row.getByText(word).first().waitFor({ state: 'attached' })
      await row.locator('summary').click()
      const pre = row.locator('pre').first()
      const { lineHeight, height } = await pre.evaluate((element) => ({
        lineHeight: element.scrollHeight / (element.textContent?.split('\n').length ?? 1),
        height: element.scrollHeight,
      }))
      assert.ok(lineHeight < 25, `${height} pixels: a line of the body is broken`)
    })

  test('the page places an order, and copies its address, key and export lines', async () => {
    const page = await open()
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    const copied = async (name: string): Promise<string> => {
      await page.getByRole('button', { name, exact: true }).first().click()
      await page.getByRole('button', { name: 'Copied' }).first().waitFor()
      await page.getByRole('button', { name: 'Copied' }).first().waitFor({ state: 'detached' })
      return await page.evaluate(() => navigator.clipboard.readText())
    }
    await page.getByRole('button', { name: 'Place a test order' }).press('Enter')
    await logRow(page, 1).getByText('charged', { exact: true }).waitFor()
    assert.equal(await page.locator('#ledger tbody tr').count(), 1)

    assert.equal(await copied('Copy address'), url)
    assert.equal(await copied('Copy API key'), apiKey)
    const lines = await copied('Copy export lines')
    assert.equal(
      lines,
      `export CUSTOMER_ORDERING_BASE_URL=${url}\nexport CUSTOMER_ORDERING_API_KEY=${apiKey}\n`,
    )
  })

  test('the page explains the problem if no API key may order', async () => {
    const page = await open()
    const state = (await control('GET', '/state')) as { apiKeys: readonly object[] }
    const apiKeys = state.apiKeys.map((row) => ({ ...row, revoked: true }))
    await control('PUT', '/state', { ...state, apiKeys })
    await page.locator('#api-keys').getByText('revoked').first().waitFor()
    await page.getByRole('button', { name: 'Place a test order' }).press('Enter')
    await page.locator('#problem').getByText('No active API key has the permission orders:write').waitFor()
  })

  test('on a phone, the page has touch targets of 44 pixels, and shows requests and faults first', async () => {
    const page = await open({ viewport: { width: 390, height: 844 }, hasTouch: true })
    await fill(page)
    for (const summary of await page.locator('summary').all()) await summary.press('Enter')
    const small = await page.evaluate(() =>
      [
        ...document.querySelectorAll(
          'button, select, summary, input:not([type="radio"]), .choice label, .toggles label',
        ),
      ]
        .filter((element) => element.checkVisibility())
        .map((element) => element.closest('label') ?? element)
        .filter((element) => element.getBoundingClientRect().height < 44)
        .map((element) => element.outerHTML.slice(0, 80)),
    )
    assert.deepEqual(small, [])
    const tops = await page.evaluate(() =>
      ['log', 'faults', 'wallets', 'ledger', 'orders'].map(
        (name) => document.getElementById(`${name}-title`)?.getBoundingClientRect().top ?? 0,
      ),
    )
    assert.deepEqual(
      tops,
      tops.toSorted((a, b) => a - b),
    )
  })

  test('on a phone, the header leaves three quarters of the screen, cards are capped, and a bar jumps to each', async () => {
    const height = 844
    const page = await open({ viewport: { width: 390, height }, hasTouch: true })
    await fill(page)
    await control('DELETE', '/faults')
    for (let number = 0; number < 20; number++) await order(`key-${number}`, `shop-${number}`)
    await page.locator('#ledger').getByText('shop-19', { exact: true }).waitFor()
    const [header = 0, whole = 0] = await page.evaluate(() => [
      document.querySelector('header')?.getBoundingClientRect().height ?? 0,
      document.documentElement.scrollHeight,
    ])
    assert.ok(header <= height / 4, `header: ${header}`)
    assert.ok(whole < 5500, `page: ${whole}`)
    for (const link of await page.locator('.jump a').all()) {
      await link.click()
      const id = (await link.getAttribute('href')) ?? ''
      const top = await page.locator(id).evaluate((title) => title.getBoundingClientRect().top)
      const bar = await page.locator('.jump').evaluate((nav) => nav.getBoundingClientRect().bottom)
      assert.ok(top >= bar && top < height, `${id} is at ${top}, below the bar at ${bar}`)
    }
  })

  test('the page blocks all other scripts and styles', async () => {
    const page = await open({}, /Content Security Policy/)
    const violated = page.evaluate(
      () =>
        new Promise<string>((resolve) => {
          document.addEventListener('securitypolicyviolation', (event) => resolve(event.effectiveDirective))
          const script = document.createElement('a')
          script.setAttribute('style', 'color: red')
          document.body.append(script)
        }),
    )
    assert.equal(await violated, 'style-src-attr')
  })

  test('the page shows a lost connection, and reconnects on its own', async () => {
    const page = await open(
      {},
      /ERR_(?:CONNECTION_REFUSED|INCOMPLETE_CHUNKED_ENCODING|EMPTY_RESPONSE|CONNECTION_RESET)/,
    )
    const { port } = new URL(url)
    server.kill()
    await page.getByText('not connected', { exact: true }).waitFor()
    await start(port)
    await page.getByText('live', { exact: true }).waitFor()
    await order('after', 'shop-9')
    await page.locator('#ledger').getByText('shop-9').waitFor()
  })

  for (const scheme of ['light', 'dark'] as const)
    for (const width of [1280, 390])
      test(`the page is accessible in ${scheme} at ${width} pixels`, async () => {
        // So high that the request log scrolls nothing out of sight, where its contrast could not be measured.
        const page = await open({ colorScheme: scheme, viewport: { width, height: 16_000 } })
        await fill(page)
        assert.equal(
          await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
          true,
          'too wide',
        )
        const openAll = (open: boolean): Promise<void> =>
          page.evaluate((value) => {
            for (const details of document.querySelectorAll('details')) details.open = value
          }, open)
        await openAll(true)
        assert.deepEqual(await accessibilityProblems(page), [])
        const phone = width < 1000
        if (!screenshots || (phone && scheme === 'dark')) return
        await openAll(false)
        await page.setViewportSize({ width, height: phone ? 844 : 900 })
        if (phone) await page.locator('#log-title').evaluate((title) => title.scrollIntoView())
        const name = phone ? 'sandbox-phone' : `sandbox-${scheme}`
        await writeFile(join(screenshots, `${name}.webp`), await webpOf(await page.screenshot()))
      })
})

/** A fifth of the size of a PNG: the pictures are in the package. */
async function webpOf(png: Buffer): Promise<Buffer> {
  const page = await browser.newPage()
  const base64 = await page.evaluate(async (source) => {
    const bytes = Uint8Array.from(atob(source), (character) => character.charCodeAt(0))
    const image = await createImageBitmap(new Blob([bytes]))
    const canvas = new OffscreenCanvas(image.width, image.height)
    canvas.getContext('2d')?.drawImage(image, 0, 0)
    const blob = await canvas.convertToBlob({ type: 'image/webp', quality: 0.5 })
    return btoa(
      Array.from(new Uint8Array(await blob.arrayBuffer()), (byte) => String.fromCharCode(byte)).join(''),
    )
  }, png.toString('base64'))
  await page.close()
  return Buffer.from(base64, 'base64')
}

/** The page redraws a switch when the sandbox confirms it, so wait for its state. */
async function switchOn(page: Page, name: string): Promise<void> {
  await page.getByRole('switch', { name }).click()
  await page.getByRole('switch', { name, checked: true }).waitFor()
}

/** Fills every table of the page. */
async function fill(page: Page): Promise<void> {
  await order('5f0c7d1e-6a0b-4d7e-9a52-0c3b8f1d2e44', 'shop-1001')
  // Wait until the page is drawn: otherwise, the switch would move away from the pointer.
  await page.locator('#ledger').getByText('shop-1001').waitFor()
  await logRow(page, 1).getByText(/^201$/).waitFor()
  await switchOn(page, 'Charge, then lose the response')
  await page.getByText('acted 0 of 1').waitFor()
  await order('0b9d8a52-1e7c-4c39-8f60-77b0a4e3c915', 'shop-1002')
  await order('0b9d8a52-1e7c-4c39-8f60-77b0a4e3c915', 'shop-1002')
  await order('c2f6ab10-93f4-4b7b-a9d8-3e5a1c7f6b02', 'shop-1003', 'svc_premium')
  // Wait again, for the radio button.
  await page.getByText('acted 1 of 1').waitFor()
  await page.locator('#ledger').getByText('shop-1002').waitFor()
  await logRow(page, 4)
    .getByText(/^4\d\d$/)
    .waitFor()
  await page.getByRole('radio', { name: 'one in four' }).check()
  await switchOn(page, 'Still in progress')
  await fetch(`${url}/v1/orders?limit=5`, { headers: { authorization: `Bearer ${apiKey}` } })
  await fetch(`${url}/v1/balance`)
  await page.getByText('always on').waitFor()
  await logRow(page, 6).getByText('401', { exact: true }).waitFor()
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
