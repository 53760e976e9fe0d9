import { cpSync, existsSync, readdirSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type DefaultTheme, defineConfig } from 'vitepress'
import { draw } from '../diagrams.ts'

const root = fileURLToPath(new URL('../../../..', import.meta.url))
const staged = fileURLToPath(new URL('../.pages', import.meta.url))

/** What the site is made of. It is copied into this package, whose Vue the compiled pages would not find otherwise. */
const SOURCES = [
  ...['README.md', 'AGENTS.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'RELEASING.md', 'SECURITY.md'],
  'docs',
]
const stage = (source: string): void => cpSync(join(root, source), join(staged, source), { recursive: true })

rmSync(staged, { recursive: true, force: true })
for (const source of SOURCES) stage(source)
cpSync(join(root, 'llms.txt'), join(staged, 'public/llms.txt'))
const written = fileURLToPath(new URL('../reference', import.meta.url))
if (existsSync(written)) cpSync(written, join(staged, 'docs/reference'), { recursive: true })

const guide = (text: string, page: string) => ({ text, link: `/docs/guide/${page}` })

/** The reference as TypeDoc has written it: a folder for each entry point and kind, a page for each name. */
function reference(folder = 'docs/reference'): DefaultTheme.SidebarItem[] {
  if (!existsSync(join(staged, folder))) return []
  const entries = readdirSync(join(staged, folder), { withFileTypes: true })
  const pages = entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.md') && entry.name !== 'index.md')
    .map(({ name }) => name.replace(/\.md$/, ''))
    .map((text) => ({ text, link: `/${folder}/${text}` }))
  const folders = entries
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => {
      const link = existsSync(join(staged, folder, name, 'index.md')) ? { link: `/${folder}/${name}/` } : {}
      return { text: name, ...link, items: reference(`${folder}/${name}`) }
    })
  return [...folders, ...pages]
}

/** Leaves the words out of a search that every page has. The page gets the text of the function, so all it needs is inside. */
function processTerm(term: string): string | undefined {
  const everywhere =
    ' a an and are as at be by can cannot do does for from get have how i if in is it its me my need of on or should so that the this to use want we what when where which why will with you your '
  const word = term.toLowerCase()
  return everywhere.includes(` ${word} `) ? undefined : word
}

/** Puts the guides before the reference and the pages for maintainers. */
function boostDocument(id: string): number {
  if (/^\/docs\/guide\//.test(id)) return 2
  return /^\/(docs\/(reference|decisions|verification|invariants|protocol|performance|architecture)|CHANGELOG)/.test(
    id,
  )
    ? 0.5
    : 1
}

const maintainers = ['architecture', 'protocol', 'invariants', 'verification', 'performance']

export default defineConfig({
  title: 'customer-ordering-sdk',
  description:
    'A TypeScript client for the Customer Ordering API: no order is charged twice, and no order is lost.',
  lang: 'en',
  srcDir: '.pages',
  rewrites: { 'README.md': 'index.md' },
  // A plain file server finds `recovery.html`, but not `recovery`.
  cleanUrls: false,
  head: [['meta', { name: 'referrer', content: 'no-referrer' }]],
  // Those of GitHub have comments of too little contrast.
  markdown: {
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    config: ({ renderer }) => {
      const { fence } = renderer.rules
      renderer.rules.fence = (tokens, index, ...rest) => {
        const token = tokens[index]
        const drawn = token?.info.trim() === 'mermaid' ? draw(token.content) : undefined
        return drawn ?? fence?.(tokens, index, ...rest) ?? ''
      }
      const { code_inline: code } = renderer.rules
      // Lets a narrow table break `in_progress` or `OrderConflictError` between their words.
      renderer.rules.code_inline = (...args) =>
        (code?.(...args) ?? '').replaceAll(
          /(?<=[a-z\d)])(?=[A-Z(])|(?<=[a-zA-Z][_./,])(?=[a-zA-Z])/g,
          '<wbr>',
        )
    },
  },
  vite: {
    plugins: [
      {
        name: 'pages-as-they-are-written',
        configureServer: ({ watcher }) => {
          watcher.add(SOURCES.map((source) => join(root, source)))
          watcher.on('change', (path) => {
            const source = relative(root, path)
            if (SOURCES.some((known) => source === known || source.startsWith(`${known}/`))) stage(source)
          })
        },
      },
    ],
  },
  themeConfig: {
    search: { provider: 'local', options: { miniSearch: { searchOptions: { processTerm, boostDocument } } } },
    outline: [2, 3],
    nav: [
      { text: 'Guide', link: '/docs/guide/getting-started' },
      { text: 'All pages', link: '/docs/' },
      { text: 'Reference', link: '/docs/reference/' },
      { text: 'Changelog', link: '/CHANGELOG' },
    ],
    sidebar: [
      {
        text: 'Start',
        items: [
          { text: 'Overview', link: '/' },
          guide('Getting started', 'getting-started'),
          guide('Errors and money', 'errors'),
          guide('Recovery', 'recovery'),
          guide('On call: needs_attention', 'on-call'),
          guide('Testing: a lost response', 'testing'),
        ],
      },
      {
        text: 'Stores',
        items: [
          guide('Choosing a store', 'stores'),
          guide('Memory', 'stores/memory'),
          guide('SQLite', 'stores/sqlite'),
          guide('PostgreSQL', 'stores/postgres'),
          guide('MySQL', 'stores/mysql'),
          guide('Redis', 'stores/redis'),
          guide('IndexedDB', 'stores/indexeddb'),
          guide('Cloudflare D1', 'stores/d1'),
          guide('Durable Objects', 'stores/durable-object'),
          guide('Your own', 'stores/your-own'),
          guide('If the store is lost', 'lost-store'),
          guide('Stored data', 'stored-data'),
          guide('Encryption', 'encryption'),
        ],
      },
      {
        text: 'Use',
        items: [
          guide('Placing an order', 'orders'),
          guide('Lists and pagination', 'lists'),
          guide('Many orders', 'many-orders'),
          guide('Outbox', 'outbox'),
          guide('From your own fetch', 'from-your-own-fetch'),
          guide('Frameworks', 'frameworks'),
          guide('Browsers', 'browsers'),
          guide('Proxy', 'proxy'),
          guide('API keys: rotation', 'api-keys'),
          guide('Observability', 'observability'),
          guide('OpenTelemetry', 'opentelemetry'),
          guide('Upgrading a fleet', 'upgrading'),
        ],
      },
      {
        text: 'Look up',
        items: [
          guide('Options', 'options'),
          guide('Concepts', 'concepts'),
          guide('Responses', 'responses'),
          guide('The sandbox', 'sandbox'),
          guide('The command', 'command'),
          guide('Performance', 'performance'),
          guide('undici transport', 'undici'),
          guide('Runtimes', 'runtimes'),
          { text: 'Policies', link: '/docs/policies' },
          { text: 'Security', link: '/SECURITY' },
        ],
      },
      { text: 'Reference', items: reference() },
      {
        text: 'Maintainers',
        items: [
          { text: 'Contributing', link: '/CONTRIBUTING' },
          { text: 'Releasing', link: '/RELEASING' },
          ...maintainers
            .filter((page) => existsSync(join(root, `docs/${page}.md`)))
            .map((page) => ({
              text: page === 'performance' ? 'Benchmarks' : page.charAt(0).toUpperCase() + page.slice(1),
              link: `/docs/${page}`,
            })),
          { text: 'Decisions', link: '/docs/decisions/' },
        ],
      },
    ],
  },
})
