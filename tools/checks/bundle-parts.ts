import { SourceMap } from 'node:module'
import { gzipSync } from 'node:zlib'
import ts from 'typescript'

/** A part of a bundle. */
export interface BundlePart {
  readonly name: string
  /** Its minified bytes in the bundle. */
  readonly minified: number
  /**
   * The bytes that the compressed bundle would save without it. The sum is less than the whole,
   * because similar parts compress together.
   */
  readonly less: number
}

const gzip = (text: string): number => gzipSync(text, { level: 9 }).length

/** The source file of each character of a bundle, from its source map. */
function sourcesOf(code: string, map: string): string[] {
  const sources = new SourceMap(JSON.parse(map))
  return code.split('\n').flatMap((line, row) =>
    Array.from(`${line}\n`.slice(0, line.length + 1), (_, column) => {
      const entry = sources.findEntry(row, column)
      return 'originalSource' in entry ? entry.originalSource : ''
    }),
  )
}

function without(code: string, removed: (index: number) => boolean): string {
  let left = ''
  for (let index = 0; index < code.length; index++) if (!removed(index)) left += code[index]
  return left
}

/** `src/http/call.ts` as `src/http`, and dependencies by their names. */
function folderOf(source: string): string {
  const [, dependency] = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source) ?? []
  if (dependency !== undefined) return dependency
  const [, own] = /(?:^|\/)(src\/.*)$/.exec(source) ?? []
  if (own === undefined) return 'joints of the bundle'
  return own.split('/').length > 2 ? own.split('/').slice(0, 2).join('/') : own
}

function fileOf(source: string): string {
  return /(?:^|\/)(src\/.*)$/.exec(source)?.[1] ?? folderOf(source)
}

/**
 * Splits a bundle by this package's folders and dependencies, and by its files. The largest come
 * first.
 */
export function bundleParts(
  code: string,
  map: string,
): {
  readonly folders: readonly BundlePart[]
  readonly files: readonly BundlePart[]
  readonly texts: BundlePart
} {
  const sources = sourcesOf(code, map)
  const whole = gzip(code)
  const by = (nameOf: (source: string) => string): BundlePart[] => {
    const known = new Map([...new Set(sources)].map((source) => [source, nameOf(source)]))
    const names = sources.map((source) => known.get(source) ?? '')
    return [...new Set(names)]
      .map((name) => ({
        name,
        minified: names.filter((each) => each === name).length,
        less: whole - gzip(without(code, (index) => names[index] === name)),
      }))
      .toSorted((a, b) => b.minified - a.minified)
  }
  return {
    folders: by(folderOf),
    files: by(fileOf).filter(({ name }) => name.startsWith('src/')),
    texts: textsOf(code, whole),
  }
}

/** Texts for people: strings with a space. */
function textsOf(code: string, whole: number): BundlePart {
  const removed = new Set<number>()
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node)) {
      if (node.text.includes(' '))
        for (let index = node.getStart() + 1; index < node.getEnd() - 1; index++) removed.add(index)
    }
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile('bundle.js', code, ts.ScriptTarget.ES2022, true, ts.ScriptKind.JS))
  return {
    name: 'texts for people',
    minified: removed.size,
    less: whole - gzip(without(code, (index) => removed.has(index))),
  }
}
