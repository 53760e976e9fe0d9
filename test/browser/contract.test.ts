import { storeContract } from 'customer-ordering-sdk/stores/contract'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Chromium } from './support/chromium.ts'
import { announceMissing, describeWithChromium } from './support/needs-chromium.ts'
import { type Site, serveSite } from './support/site.ts'

announceMissing()

describeWithChromium('IndexedDbStore in Chromium', () => {
  let browser: Chromium | undefined
  let site: Site | undefined
  let page: Page | undefined

  beforeAll(async () => {
    browser = await Chromium.start()
    site = await serveSite('contract')
    page = await browser.context.newPage()
    await page.goto(site.pageOf('contract'))
  })
  afterAll(async () => {
    await browser?.stop()
    await site?.close()
  })

  const elsewhere = (): never => {
    throw new Error('the stores are in the page')
  }
  storeContract({
    test: {
      describe,
      it: (title) =>
        it(title, async () => {
          if (page === undefined) throw new Error('there is no page')
          expect(await page.evaluate((name) => window.runCase(name), title)).toBeUndefined()
        }),
    },
    createStore: elsewhere,
    openSecond: elsewhere,
    reopenStore: elsewhere,
  })
})
