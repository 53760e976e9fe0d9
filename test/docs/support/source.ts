import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { root } from '../../../tools/build/ensure-built.ts'

/** A comment or a message of `src`. */
export interface Words {
  /** File and line, for example `src/client.ts:12`. */
  readonly at: string
  /** Without the marks of a comment, its code and its examples. An expression in a message is `…`. */
  readonly text: string
}

/** Strings without prose: SQL, Lua, HTML, CSS, and the help of a command. */
const OTHER_LANGUAGE = /^\s*(?:[.$<:]|local )|\b(?:SELECT|CREATE|INSERT|UPDATE|DELETE|PRAGMA)\b|\n {2}/

function wordsOfComment(comment: string): string {
  return comment
    .replace(/\*\/$/, '')
    .replaceAll(/^\/\*\*?|^[ \t]*(?:\*|\/\/) ?/gm, '')
    .replaceAll(/^@example[\s\S]*?(?=^@|$(?![\s\S]))/gm, '')
    .replaceAll(/`[^`]*`/g, 'code')
    .replaceAll(/\{@link ([^}]*)\}/g, '$1')
}

/** A block, or line comments one after the other, or one behind code. */
const COMMENT = /\/\*\*?\s[\s\S]*?\*\/|(?:^[ \t]*\/\/ .*\n)+|(?<=\s)\/\/ .*$/gm

/** The comments of a file, and the strings that read as sentences. */
function wordsOf(path: string): { readonly comments: Words[]; readonly messages: Words[] } {
  const text = readFileSync(join(root, path), 'utf8')
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest)
  const at = (position: number): string => `${path}:${file.getLineAndCharacterOfPosition(position).line + 1}`
  const messages: Words[] = []
  const add = (node: ts.Node, message: string): void => {
    if (/\w \w/.test(message) && !OTHER_LANGUAGE.test(message))
      messages.push({ at: at(node.getStart(file)), text: message.replaceAll(/`[^`]*`/g, 'code') })
  }
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) add(node, node.text)
    if (ts.isTemplateExpression(node))
      add(node, node.head.text + node.templateSpans.map(({ literal }) => `…${literal.text}`).join(''))
    ts.forEachChild(node, visit)
  }
  visit(file)
  const comments = [...text.matchAll(COMMENT)].map(({ 0: comment, index }) => ({
    at: at(index + comment.search(/\S/)),
    text: wordsOfComment(comment),
  }))
  return { comments, messages }
}

const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .toSorted()
  .map((name) => wordsOf(`src/${name}`))

export const comments: readonly Words[] = files.flatMap((file) => file.comments)
/** All messages of `src`: the strings with several words. */
export const messages: readonly Words[] = files.flatMap((file) => file.messages)

/**
 * The sentences of a comment or message. A paragraph, a list item and a tag each begin a new
 * sentence.
 */
export function sentencesOf({ text }: Words): readonly string[] {
  return text.split(/\n\s*\n|\n(?=\s*(?:@|- ))/).flatMap((paragraph) =>
    paragraph
      .replaceAll(/\s+/g, ' ')
      .trim()
      .split(/[.!?;:] /),
  )
}
