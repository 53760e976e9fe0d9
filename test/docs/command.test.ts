import { expect, test } from 'vitest'
import { COMMANDS } from '../../src/command/commands.ts'
import { OTHERS } from '../../src/command/help.ts'
import { environmentName, OPTIONS } from '../../src/command/options.ts'
import { runHere } from '../command/terminal.ts'
import { blocksOf, readPages } from './support/pages.ts'

const pages = readPages()
const page = pages.find(({ path }) => path === 'docs/guide/command.md')?.text ?? ''

/** The first cells of the rows of the page's tables. */
const firstCells = [...page.matchAll(/^\| (.+?) \|/gm)].map(([, cell = '']) => cell)

test('the page has every command', () => {
  const named = firstCells.flatMap((cell) => /^`([a-z]+(?: (?:list|get))?)(?=[ `])/.exec(cell)?.[1] ?? [])
  expect(new Set(named)).toEqual(new Set([...Object.keys(COMMANDS), ...Object.keys(OTHERS)]))
})

test('the page has every option, and the variable of each option that has one', () => {
  const named = Object.entries(OPTIONS).filter(([name]) => !['help', 'version'].includes(name))
  const texts = named.flatMap(([name, option]) => [
    `--${name}`,
    ...('env' in option ? [environmentName(name)] : []),
  ])
  expect(texts.filter((text) => !page.includes(text))).toEqual([])
})

const lines = pages
  .flatMap(blocksOf)
  .filter(({ info }) => info === 'sh')
  .flatMap(({ at, code }) =>
    code
      .replaceAll('\\\n', ' ')
      .split('\n')
      .filter((line) => /npx customer-ordering-sdk (?!sandbox|quickstart|--)/.test(line))
      .map((line) => [at, line.replace(/^.*customer-ordering-sdk | [>|#].*$/g, '').trim()] as const),
  )

test.each(lines)('the command of %s is understood: %s', async (_at, line) => {
  const { err } = await runHere(line.split(/ +/), { env: {} })
  // Arguments are checked before the environment is read.
  expect(err).toBe(
    'customer-ordering-sdk: CUSTOMER_ORDERING_BASE_URL is not set. Set it in the environment.\n',
  )
})
