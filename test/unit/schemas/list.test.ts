import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readEnvelope } from '../../../src/schemas/list.ts'

const rows = [{ id: 'ord_1' }, { id: 'ord_2' }]

const envelopeOf = (body: unknown): unknown => {
  const found = readEnvelope(body, 'id')
  return 'value' in found ? found.value : found.issues[0]?.message
}

describe('the rows of a list answer', () => {
  const shapes: Record<string, readonly [body: unknown, envelope: unknown]> = {
    'are the answer itself': [rows, { items: rows }],
    'are the answer itself if it is empty': [[], { items: [] }],
    'are the one array of an object': [{ data: rows }, { items: rows }],
    'are the one array, whatever its name': [{ status: 'ok', 注文: rows }, { items: rows }],
    'are the one array, also if it is empty': [
      { orders: [], total: 0 },
      { items: [], total: 0 },
    ],
    'are the one array, also if its rows have no id': [{ list: [1, 2] }, { items: [1, 2] }],
    'are the array with ids among several': [{ warnings: ['x'], orders: rows }, { items: rows }],
    'are the array with ids beside an empty one': [{ errors: [], orders: rows }, { items: rows }],
    'are the array with one id among several': [{ a: [{ id: 'x' }], b: ['y'] }, { items: [{ id: 'x' }] }],
    'are none if all arrays are empty': [{ errors: [], orders: [] }, { items: [] }],
    'are none if only arrays of others are not': [
      { data: [], meta: { sorts: [] }, x: { y: [{}] } },
      { items: [] },
    ],
  }
  test.each(Object.entries(shapes))('the rows of a list %s', (_title, [body, envelope]) => {
    expect(envelopeOf(body)).toEqual(envelope)
  })

  const SEVERAL = /^has several arrays; .* option listEnvelope to (choose one|find them)$/
  const NONE = /^has no array of rows; .* option listEnvelope to (choose one|find them)$/
  test.each<[why: string, body: unknown, message: RegExp]>([
    ['two arrays have ids', { a: rows, b: rows }, SEVERAL],
    ['no array of several has ids', { a: [1], b: [2] }, SEVERAL],
    ['one array is empty and the other is something else', { orders: [], tags: ['x'] }, SEVERAL],
    ['one array is empty and the other has a null', { tags: [], orders: [{ id: 'x' }, null] }, SEVERAL],
    ['only some rows have ids', { a: [{ id: 'x' }, {}], b: ['y'] }, SEVERAL],
    ['ids are no texts', { a: [{ id: 1 }], b: ['y'] }, SEVERAL],
    ['there is no array', { id: 'ord_1' }, NONE],
    ['the object is empty', {}, NONE],
    ['the array is further down', { data: { items: rows } }, NONE],
    ['the array is beside an empty one, as part of the paging', { page: { of: rows }, errors: [] }, NONE],
    ['the array is further down, beside an empty one', { data: { list: { of: rows } }, errors: [] }, NONE],
    ...[undefined, null, 1, 'text', true].map((body): [string, unknown, RegExp] => [
      `the body is ${body}`,
      body,
      /^is neither an array nor an object$/,
    ]),
  ])('the rows of a list are not guessed if %s', (_why, body, message) => {
    expect(envelopeOf(body)).toMatch(message)
  })
})

test.each([
  [{ total: 7 }, { total: 7 }],
  [{ totalCount: 7 }, { total: 7 }],
  [{ total_count: 0 }, { total: 0 }],
  [{ meta: { total: 7 } }, { total: 7 }],
  [{ pagination: { total: 7, hasMore: false } }, { total: 7, hasMore: false }],
  [{ paging: { has_more: true } }, { hasMore: true }],
  [{ page: { hasNext: true } }, { hasMore: true }],
  [{ pageInfo: { has_next: false } }, { hasMore: false }],
  [{ page_info: { totalCount: 3 } }, { total: 3 }],
  [{ hasMore: true, meta: { hasMore: false } }, { hasMore: true }],
  [{ total: 'many', meta: { total: 5 } }, { total: 5 }],
])('how a list continues is read from %j', (fields, expected) => {
  expect(envelopeOf({ data: rows, ...fields })).toEqual({ items: rows, ...expected })
})

test.each([
  ...[-1, 1.5, '7', null, 2 ** 53].map((total) => ({ total })),
  ...[{ hasMore: 1 }, { hasMore: 'true' }, { has_more: null }, { page: 3 }, { meta: null }],
  ...[{ count: 7 }, { data2: { total: 7 } }],
])('how a list continues is not read from %j', (fields) => {
  expect(envelopeOf({ data: rows, ...fields })).toEqual({ items: rows })
})

test('any JSON is an envelope or gives issues', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (body) => {
      const found = readEnvelope(body, 'id')
      if ('value' in found) expect(Array.isArray(found.value.items)).toBe(true)
      else expect(found.issues.length).toBeGreaterThan(0)
    }),
  )
})
