/** Removes comments from sources before they are bundled. */
import { readFileSync } from 'node:fs'
import type { Plugin } from 'esbuild'
import ts from 'typescript'

/** Comments that bundlers and minifiers read. */
const READ_BY_TOOLS = /[@#]__[A-Z_]+__|@license|@preserve|webpackIgnore|@vite-ignore/

/** Removes the comments of a TypeScript file. Line breaks stay, because they may end a statement. */
export function withoutComments(text: string): string {
  const file = ts.createSourceFile('source.ts', text, ts.ScriptTarget.Latest, true)
  const comments = new Map<number, number>()
  const visit = (node: ts.Node): void => {
    const { pos, end } = node
    for (const comment of [
      ...(ts.getLeadingCommentRanges(text, pos) ?? []),
      ...(ts.getTrailingCommentRanges(text, end) ?? []),
    ])
      if (!READ_BY_TOOLS.test(text.slice(comment.pos, comment.end))) comments.set(comment.pos, comment.end)
    for (const child of node.getChildren(file)) if (!ts.isJSDoc(child)) visit(child)
  }
  visit(file)
  let [result, from] = ['', 0]
  for (const [pos, end] of [...comments].toSorted(([a], [b]) => a - b)) {
    result += text.slice(from, pos) + (text.slice(pos, end).includes('\n') ? '\n' : ' ')
    from = end
  }
  return result + text.slice(from)
}

/** The declarations repeat the comments for users; in the bundles they would be a sixth of the size. */
export const sourcesWithoutComments: Plugin = {
  name: 'sources-without-comments',
  setup(build) {
    build.onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => ({
      contents: withoutComments(readFileSync(path, 'utf8')),
      loader: 'ts',
    }))
  },
}
