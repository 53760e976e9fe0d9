/**
 * Checks the built site in a browser, as a reader and as axe see it:
 *
 *     npm run check
 *
 * VitePress itself refuses to build with a dead link between pages. CHROMIUM names the browser (default: /usr/bin/chromium).
 */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import axe, { type AxeResults } from 'axe-core'
import { type Browser, chromium, type Page } from 'playwright-core'

const site = fileURLToPath(new URL('.vitepress/dist', import.meta.url))
const program = process.env['CHROMIUM'] ?? '/usr/bin/chromium'
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.txt': 'text/plain; charset=utf-8',
  '.woff2': 'font/woff2',
}

/** Addresses of all pages, as links name them. */
const pages = readdirSync(site, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.html') && name !== '404.html')
  .map((name) => `/${name.replace(/(index)?\.html$/, '')}`)

function fileOf(path: string): string | undefined {
  const named = join(site, decodeURIComponent(path))
  const files = path.endsWith('/') ? [join(named, 'index.html')] : [named, `${named}.html`]
  return files.find((file) => existsSync(file) && extname(file) !== '')
}

describe('the built site', () => {
  test('has the pages that a new user looks for', () => {
    for (const page of ['errors', 'stores', 'testing', 'on-call', 'api-keys', 'upgrading', 'frameworks'])
      assert.ok(pages.includes(`/docs/guide/${page}`), page)
    assert.ok(pages.some((page) => page.startsWith('/docs/reference/')))
  })

  test('has no link, picture or script that leads nowhere, and none to another site but in text', () => {
    const broken: string[] = []
    for (const page of pages) {
      const html = readFileSync(fileOf(page) ?? '', 'utf8')
      for (const [, attribute = '', address = ''] of html.matchAll(/ (href|src)="([^"]*)"/g)) {
        const { pathname, origin } = new URL(address.replaceAll('&amp;', '&'), `https://site.example${page}`)
        if (address.startsWith('data:')) continue
        // A link may lead elsewhere. What a page loads may not.
        if (origin === 'https://site.example' ? fileOf(pathname) === undefined : attribute === 'src')
          broken.push(`${page}: ${address}`)
      }
    }
    assert.deepEqual(broken, [])
  })

  test('has a picture in place of every diagram', () => {
    const code = pages.filter((page) => readFileSync(fileOf(page) ?? '', 'utf8').includes('language-mermaid'))
    assert.deepEqual(code, [])
    const html = readFileSync(fileOf('/docs/architecture') ?? '', 'utf8')
    assert.equal(html.match(/<svg class="diagram" role="img"/g)?.length, 2)
  })
})

describe('in a browser', { skip: !existsSync(program) && process.env['CI'] !== 'true' }, () => {
  let server: Server
  let browser: Browser
  let origin = ''

  before(async () => {
    server = createServer((request, response) => {
      const file = fileOf(new URL(request.url ?? '/', 'http://site').pathname)
      if (file === undefined) return response.writeHead(404).end()
      return response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? '' }).end(readFileSync(file))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    browser = await chromium.launch({ executablePath: program, args: ['--no-sandbox', '--disable-gpu'] })
  })
  after(async () => {
    await browser?.close()
    server?.close()
  })

  /** Opens a page, and says what it asked of other sites and what went wrong in it. */
  async function open(path: string, options: { dark?: boolean; width?: number } = {}) {
    const context = await browser.newContext({
      colorScheme: options.dark ? 'dark' : 'light',
      viewport: { width: options.width ?? 1280, height: 900 },
      reducedMotion: 'reduce',
    })
    const page = await context.newPage()
    const complaints: string[] = []
    page.on('request', (request) => {
      if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(origin))
        complaints.push(`asks ${request.url()}`)
    })
    page.on('response', (response) => {
      if (response.status() >= 400) complaints.push(`${response.status()} ${response.url()}`)
    })
    page.on('pageerror', (error) => complaints.push(error.message))
    await page.goto(`${origin}${path}`, { waitUntil: 'networkidle' })
    return { page, complaints, close: () => context.close() }
  }

  async function violations(page: Page): Promise<string[]> {
    await page.evaluate(axe.source)
    const found = await page.evaluate<AxeResults>(
      'axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] })',
    )
    return found.violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 160)}`)
  }

  for (const path of ['/', '/docs/guide/errors', '/docs/guide/stores', '/docs/architecture'])
    for (const dark of [false, true])
      test(`${path} is readable for everybody, ${dark ? 'dark' : 'light'}, and loads nothing from elsewhere`, async () => {
        const { page, complaints, close } = await open(path, { dark })
        assert.equal(await page.evaluate(() => document.documentElement.classList.contains('dark')), dark)
        assert.deepEqual(await violations(page), [])
        assert.deepEqual(complaints, [])
        await close()
      })

  test('a page fits a telephone without scrolling sideways', async () => {
    for (const path of ['/', '/docs/guide/stores', '/docs/guide/sandbox']) {
      const { page, close } = await open(path, { width: 375 })
      const width = await page.evaluate(() => document.documentElement.scrollWidth)
      assert.ok(width <= 375, `${path} is ${width} wide`)
      await close()
    }
  })

  for (const [words, wanted] of [
    ['past_window', '/docs/guide/on-call'],
    ['rotate api key', '/docs/guide/api-keys'],
    ['lambda', '/docs/guide/stores'],
    ['lost response', '/docs/guide/testing'],
    ['upgrade fleet', '/docs/guide/upgrading'],
    ['how do i place an order so that a crash cannot double it', '/docs/guide/getting-started'],
    ['what do i do with charged unknown', '/docs/guide/errors'],
    ['exponential backoff', '/docs/guide/errors'],
    ['pagination', '/docs/guide/lists'],
  ] as const)
    test(`a search for "${words}" shows ${wanted} among the first five`, async () => {
      const { page, complaints, close } = await open('/')
      // The page hears the key once its script has run, which nothing shows.
      const input = page.locator('#localsearch-input')
      for (let tries = 0; tries < 20 && !(await input.isVisible()); tries++) {
        await page.keyboard.press('Control+k')
        await page.waitForTimeout(100 * tries)
      }
      await input.fill(words)
      await page.waitForSelector('#localsearch-list a')
      const found = await page.$$eval('#localsearch-list a', (links) =>
        links.map((link) => link.getAttribute('href')?.replace(/#.*$/, '')),
      )
      assert.ok(found.slice(0, 5).includes(wanted), found.join(' '))
      assert.deepEqual(complaints, [])
      await close()
    })
})
