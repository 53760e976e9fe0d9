import { expect, it } from 'vitest'
import {
  decimal,
  oneOf,
  parseArguments,
  positive,
  positiveInteger,
  UsageError,
  wholeNumber,
} from '../../../tools/programs/arguments.ts'

const program = {
  usage: 'program [COUNT] [--from SEED] [--whole]',
  positionals: 1,
  options: { from: { type: 'string', default: '1' }, whole: { type: 'boolean', default: false } },
} as const

const read = (...args: string[]) =>
  parseArguments(program, args, ({ positionals, values }) => ({
    count: positiveInteger('COUNT', positionals[0] ?? '500'),
    from: positiveInteger('--from', values.from),
    whole: values.whole,
  }))

it('arguments are the given values, or the defaults', () => {
  expect(read()).toEqual({ count: 500, from: 1, whole: false })
  expect(read('2_000', '--from', '7', '--whole')).toEqual({ count: 2_000, from: 7, whole: true })
  expect(read('--from=7', '3')).toEqual({ count: 3, from: 7, whole: false })
})

it.each([
  ...['foo', '0', '', '-1', '1.5', '1e3', '0x10', ' 5', '5rounds', '_5', 'NaN', 'Infinity'],
  '9007199254740992',
])('"%s" is not a count', (text) => {
  expect(() => positiveInteger('COUNT', text)).toThrow(UsageError)
})

it.each([['--nonsense'], ['1', '2'], ['--from'], ['--whole=1'], ['-x'], ['--from', 'abc']])(
  'arguments %s %s are rejected, because the program does not accept them',
  (...args) => {
    expect(() => read(...args)).toThrow(UsageError)
  },
)

it('an argument may be 0, a fraction or one of some names', () => {
  expect([wholeNumber('--prefetch', '0'), decimal('MINUTES', '0'), positive('--seconds', '0.5')]).toEqual([
    0, 0, 0.5,
  ])
  expect(oneOf('STORE', 'redis', ['sqlite', 'redis'])).toBe('redis')
  for (const wrong of [
    () => wholeNumber('--prefetch', 'four'),
    () => positive('--seconds', '0'),
    () => positive('--seconds', 'abc'),
    () => oneOf('STORE', 'foo', ['sqlite', 'redis']),
  ])
    expect(wrong).toThrow(UsageError)
})
