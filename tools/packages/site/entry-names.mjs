import { Converter, ReflectionKind } from 'typedoc'
import { MarkdownPageEvent } from 'typedoc-plugin-markdown'

/** The names by which entry points are imported, of the files that TypeDoc reads. */
const NAMES = {
  index: 'customer-ordering-sdk',
  'undici/index': 'undici',
  'proxy/index': 'proxy',
  'opentelemetry/index': 'opentelemetry',
  'sandbox/index': 'sandbox',
  'sandbox/http/server': 'sandbox/server',
  'sandbox/http/msw': 'msw',
}

/** @param {string} heading */
const slug = (heading) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')

/** @param {import('typedoc').Application} app */
export function load(app) {
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const module of project.getReflectionsByKind(ReflectionKind.Module))
      module.name = NAMES[module.name] ?? module.name
  })
  // The plugin counts a name twice if a property has it, too, and then links to a second heading that is not there.
  app.renderer.on(MarkdownPageEvent.END, (page) => {
    const headings = [...page.contents.matchAll(/^#+ (.+)$/gm)].map(([, text]) => slug(text))
    page.contents = page.contents.replace(/\]\(#([\w-]+)-\d+\)/g, (link, name) =>
      headings.filter((heading) => heading === name).length === 1 ? `](#${name})` : link,
    )
  })
}
