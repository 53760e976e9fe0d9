import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readProblem } from '../../../src/schemas/problem.ts'
import { character } from '../../support/character.ts'
import { effort } from '../../support/effort.ts'

const read = (body: unknown): ReturnType<typeof readProblem> => readProblem(JSON.stringify(body))

describe('the shapes of an error body', () => {
  const wanted = { recognised: true, code: 'NO_FUNDS', message: 'The wallet is empty.' }
  const BLANK = { type: 'about:blank', title: 'Payment Required' }
  const shapes: Record<string, unknown> = {
    bare: { code: 'NO_FUNDS', message: 'The wallet is empty.' },
    'with other names': { errorCode: 'NO_FUNDS', description: 'The wallet is empty.' },
    'in snake case': { error_code: 'NO_FUNDS', error_description: 'The wallet is empty.' },
    nested: { error: { code: 'NO_FUNDS', message: 'The wallet is empty.' } },
    'nested by another name': { error: { reason: 'NO_FUNDS', detail: 'The wallet is empty.' } },
    'a list of errors': {
      errors: [{ code: 'NO_FUNDS', message: 'The wallet is empty.' }, { code: 'OTHER' }],
    },
    'errors as an object': { errors: { code: 'NO_FUNDS', message: 'The wallet is empty.' } },
    'RFC 9457 with a code': { ...BLANK, detail: 'The wallet is empty.', code: 'NO_FUNDS' },
    'a code in error and a message beside it': { error: 'NO_FUNDS', message: 'The wallet is empty.' },
    'with unknown fields': { n: null, code: 'NO_FUNDS', message: 'The wallet is empty.', path: ['x'] },
  }
  test.each(Object.entries(shapes))('an error body is understood: %s', (_shape, body) => {
    expect(read(body)).toEqual(wanted)
  })

  const type = 'https://errors.example.com/no-funds'
  const inner = { message: 'inner', code: 'IN' }

  test.each<[string, body: object, read: object]>([
    ['a type replaces a missing code', { type, title: 'No funds' }, { code: type, message: 'No funds' }],
    ['about:blank is not a code', BLANK, { message: 'Payment Required' }],
    ['a number is a code', { code: 1042 }, { code: '1042' }],
    ['a text with spaces is a message', { error: 'Not enough money' }, { message: 'Not enough money' }],
    ['the first of a list of texts is the message', { errors: ['too small', 'x'] }, { message: 'too small' }],
    ['the outermost message counts', { message: 'outer', error: inner }, { code: 'IN', message: 'outer' }],
  ])('in an error body, %s', (_what, body, expected) => {
    expect(read(body)).toEqual({ recognised: true, ...expected })
  })

  test.each([
    // A text with spaces is never a code, and inherited codes do not count.
    ...['{"code":"Not enough money"}', '{"__proto__":{"code":"X","message":"y"}}'],
    ...['', ' ', 'null', 'true', '42', '"IDEMPOTENCY_IN_PROGRESS"', '\ufeff', '\u0000'],
    ...['[]', '[{"code":"X","message":"y"}]', '{}', '{"error":null}', '{"error":{}}', '{"errors":[]}'],
    ...['{"code":"","message":"  "}', '{"code":{},"message":[1]}', '{"code":"NO_FUNDS","message":"The'],
    ...['{"id":"ord_1","status":"pending","amount":1}', '<html><body>502 Bad Gateway</body></html>'],
  ])('%j is not recognised as an error of the service', (text) => {
    expect(readProblem(text)).toEqual({ recognised: false })
  })
})

describe('the two documented codes', () => {
  const CONFLICT = 'IDEMPOTENCY_CONFLICT'
  const IN_PROGRESS = 'IDEMPOTENCY_IN_PROGRESS'

  const places: Record<string, (code: string) => unknown> = {
    'as code': (code) => ({ code }),
    'in error': (error) => ({ error }),
    nested: (code) => ({ error: { code } }),
    'in a list': (code) => ({ errors: [{ code }] }),
    'as the second of a list': (code) => ({ errors: [{ code: 'OTHER' }, { code }] }),
    'as a problem type': (code) => ({ type: `https://errors.example.com/${code}` }),
    'as a URN': (code) => ({ type: `urn:problem:${code}` }),
    'as a fragment': (code) => ({ type: `https://errors.example.com/all#${code}` }),
    'under a name of its own': (code) => ({ data: { info: { kind: code } }, code: 'CONFLICT' }),
    'as the whole message': (code) => ({ message: code }),
  }
  for (const [place, body] of Object.entries(places)) {
    test.each([CONFLICT, IN_PROGRESS])(`the documented codes are found ${place}: %s`, (code) => {
      expect(read(body(code))).toMatchObject({ idempotency: code, code, recognised: true })
    })
  }

  test.each([
    // Both together are ambiguous.
    { code: CONFLICT, errors: [{ code: IN_PROGRESS }] },
    { message: `see ${CONFLICT} in the documentation` },
    { code: `NOT_${CONFLICT}` },
    { code: `${CONFLICT}_2` },
    { code: 'idempotency_conflict' },
    { [CONFLICT]: true },
  ])('the documented codes are not read into %j', (body) => {
    expect(read(body).idempotency).toBeUndefined()
  })

  test('the documented codes are found four levels deep, among a maximum number of values', () => {
    expect(read({ a: { b: { c: { d: CONFLICT } } } }).idempotency).toBe(CONFLICT)
    expect(read({ a: { b: { c: { d: { e: CONFLICT } } } } }).idempotency).toBeUndefined()
    const padding = Array.from({ length: 500 }, () => 'x')
    expect(read({ padding, code: 'OTHER', deep: { code: CONFLICT } }).idempotency).toBeUndefined()
    expect(read({ code: CONFLICT, padding }).idempotency).toBe(CONFLICT)
  })
})

test('any text is read without an error, and gives plain texts only', () => {
  const json = fc.json({ maxDepth: 6 })
  const errorLike = fc
    .dictionary(
      fc.constantFrom('code', 'message', 'error', 'errors', 'type', 'detail', '__proto__', 'constructor'),
      fc.jsonValue(),
    )
    .map((body) => JSON.stringify(body))
  fc.assert(
    fc.property(fc.oneof(json, errorLike, fc.string({ unit: character })), (text) => {
      const problem = readProblem(text)
      expect(typeof problem.recognised).toBe('boolean')
      expect(['undefined', 'string']).toContain(typeof problem.message)
      if (problem.code !== undefined) expect(problem.code).toMatch(/^[\w.:/#-]{1,120}$/)
    }),
    { numRuns: effort(200, 2000) },
  )
})

test('a text nested as deep as its size allows is read without a stack overflow', () => {
  const depth = 130_000
  expect(readProblem('['.repeat(depth))).toEqual({ recognised: false })
  expect(readProblem('['.repeat(depth) + ']'.repeat(depth))).toEqual({ recognised: false })
  const nested = `${'{"error":'.repeat(20_000)}{"code":"X"}${'}'.repeat(20_000)}`
  expect(readProblem(nested)).toEqual({ recognised: false })
  expect(readProblem(`{"code":"X","a":${'['.repeat(depth)}${']'.repeat(depth)}}`).code).toBe('X')
})

test('the largest possible error body is read quickly', () => {
  const wide = JSON.stringify(Object.fromEntries(Array.from({ length: 15_000 }, (_, i) => [`k${i}`, 'v'])))
  const slashes = JSON.stringify({ code: '/'.repeat(250_000) })
  const started = performance.now()
  for (const text of [wide, slashes]) expect(readProblem(text).recognised).toBe(false)
  expect(performance.now() - started).toBeLessThan(1000)
})
