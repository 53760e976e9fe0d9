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
  '.webp': 'image/webp',
  '.txt': 'text/plain; charset=utf-8',
  '.woff2': 'font/woff2',
}

/** Addresses of all pages, as links name them. */
const pages = readdirSync(site, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.html') && name !== '404.html')
  .map((name) => `/${name.replace(/(^|\/)index\.html$/, '$1')}`)

function fileOf(path: string): string | undefined {
  const file = join(site, decodeURIComponent(path.replace(/\/$/, '/index.html')))
  return existsSync(file) && extname(file) !== '' ? file : undefined
}

const ids = new Map<string, ReadonlySet<string>>()

/** Whether the page has the element that a link's fragment names. */
function hasTarget(path: string, hash: string): boolean {
  let found = ids.get(path)
  if (found === undefined) {
    const html = readFileSync(fileOf(path) ?? '', 'utf8')
    found = new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id))
    ids.set(path, found)
  }
  return hash === '' || found.has(decodeURIComponent(hash.slice(1)))
}

describe('the built site', () => {
  test('has the pages that a new user looks for', () => {
    for (const page of ['errors', 'stores', 'testing', 'on-call', 'api-keys', 'upgrading', 'frameworks'])
      assert.ok(pages.includes(`/docs/guide/${page}.html`), page)
    assert.ok(pages.some((page) => page.startsWith('/docs/reference/')))
  })

  test('has no link, picture or script that leads nowhere, and none to another site but in text', () => {
    const broken: string[] = []
    for (const page of pages) {
      const html = readFileSync(fileOf(page) ?? '', 'utf8')
      for (const [, attribute = '', address = ''] of html.matchAll(/ (href|src)="([^"]*)"/g)) {
        const { pathname, origin, hash } = new URL(
          address.replaceAll('&amp;', '&'),
          `https://site.example${page}`,
        )
        if (address.startsWith('data:')) continue
        // A link may lead elsewhere. What a page loads may not.
        const dead =
          origin === 'https://site.example'
            ? fileOf(pathname) === undefined || !hasTarget(pathname, hash)
            : attribute === 'src'
        if (dead) broken.push(`${page}: ${address}`)
      }
    }
    assert.deepEqual(broken, [])
  })

  test('has a picture in place of every diagram', () => {
    const code = pages.filter((page) => readFileSync(fileOf(page) ?? '', 'utf8').includes('language-mermaid'))
    assert.deepEqual(code, [])
    const html = readFileSync(fileOf('/docs/architecture.html') ?? '', 'utf8')
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
    // A busy machine takes longer over a large page than Playwright's 30 s.
    page.setDefaultTimeout(120_000)
    await page.goto(`${origin}${path}`)
    // Vue marks its element once it runs. Network silence says less, and never comes while links are fetched ahead.
    await page.waitForFunction("'__vue_app__' in document.querySelector('#app')")
    return { page, complaints, close: () => context.close() }
  }

  async function violations(page: Page): Promise<string[]> {
    await page.evaluate(axe.source)
    const found = await page.evaluate<AxeResults>(
      'axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] })',
    )
    return found.violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 160)}`)
  }

  for (const path of ['/', '/docs/guide/errors.html', '/docs/guide/stores.html', '/docs/architecture.html'])
    for (const dark of [false, true])
      test(`${path} is readable for everybody, ${dark ? 'dark' : 'light'}, and loads nothing from elsewhere`, async () => {
        const { page, complaints, close } = await open(path, { dark })
        assert.equal(await page.evaluate(() => document.documentElement.classList.contains('dark')), dark)
        assert.deepEqual(await violations(page), [])
        assert.deepEqual(complaints, [])
        await close()
      })

  test('a page fits a telephone without scrolling sideways', async () => {
    for (const path of [
      '/',
      '/docs/guide/stores.html',
      '/docs/guide/sandbox.html',
      '/docs/guide/on-call.html',
    ]) {
      const { page, close } = await open(path, { width: 375 })
      const width = await page.evaluate(() => document.documentElement.scrollWidth)
      assert.ok(width <= 375, `${path} is ${width} wide`)
      await close()
    }
  })

  test('a table on a telephone shows its last column without scrolling', async () => {
    for (const path of ['on-call', 'recovery', 'concepts', 'responses', 'observability']) {
      const { page, close } = await open(`/docs/guide/${path}.html`, { width: 375 })
      const cut = await page.$$eval('.vp-doc table', (tables) =>
        tables
          .filter((table) => table.scrollWidth > table.clientWidth)
          .map(
            (table) =>
              `${table.scrollWidth} in ${table.clientWidth}: ${table.textContent?.trim().slice(0, 60)}`,
          ),
      )
      assert.deepEqual(cut, [], path)
      await close()
    }
  })

  for (const [words, wanted] of [
    ['past_window', 'on-call'],
    ['rotate api key', 'api-keys'],
    ['leaked key', 'api-keys'],
    ['lambda', 'stores'],
    ['dynamodb', 'stores'],
    ['lost response', 'testing'],
    ['upgrade fleet', 'upgrading'],
    ['how do i place an order so that a crash cannot double it', 'getting-started'],
    ['what do i do with charged unknown', 'errors'],
    ['exponential backoff', 'errors'],
    ['pagination', 'lists'],
    ['bundle size', 'performance'],
  ] as const)
    test(`a search for "${words}" shows the guide ${wanted} among the first five`, async () => {
      const { page, complaints, close } = await open('/')
      const input = page.locator('#localsearch-input')
      await page.keyboard.press('Control+k')
      await input.fill(words)
      await page.waitForSelector('#localsearch-list a')
      const found = await page.$$eval('#localsearch-list a', (links) =>
        links.map((link) => link.getAttribute('href')?.replace(/#.*$/, '')),
      )
      assert.ok(found.slice(0, 5).includes(`/docs/guide/${wanted}.html`), found.join(' '))
      assert.deepEqual(complaints, [])
      await close()
    })
})
