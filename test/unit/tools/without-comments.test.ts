import { expect, test } from 'vitest'
import { withoutComments } from '../../../tools/build/without-comments.ts'

test.each([
  ['a line comment ends with its line', 'const a = 1 // one\nconst b = 2', 'const a = 1  \nconst b = 2'],
  ['a documentation comment', '/** What it is. */\nexport const a = 1', ' \nexport const a = 1'],
  ['a comment of a member', 'class A {\n  /** Its name. */\n  b = 1\n}', 'class A {\n   \n  b = 1\n}'],
  ['a comment at the end of a block', 'if (a) {\n  // nothing\n}', 'if (a) {\n   \n}'],
  ['a comment at the end of the file', 'a()\n// end', 'a()\n '],
  ['a comment, but not the line break in it, which may end a statement', 'a /* 1\n2 */ b', 'a \n b'],
])('the build removes %s', (_what, text, expected) => {
  expect(withoutComments(text)).toBe(expected)
})

test.each([
  `const a = 'https://example.com' + \`//\${b} /* c */\` + "/** d */"`,
  'const a = /\\/\\/.*$/',
  'const a = /* @__PURE__ */ make()',
  'await import(/* webpackIgnore: true */ name)',
])('the build keeps %s', (text) => {
  expect(withoutComments(text)).toBe(text)
})
