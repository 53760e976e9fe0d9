/** Every harness uses the detector of leaked API keys, so it must find a key in each place. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ApiError, MemoryStore } from 'customer-ordering-sdk'
import { SqliteStore } from 'customer-ordering-sdk/stores/sqlite'
import { expect, it } from 'vitest'
import { temporaryFolder } from '../../support/folder.ts'
import { silence } from '../../support/invariants.ts'
import { leaks, leaksAtAGlance, leaksInFiles, spellingsIn } from '../../support/leaks.ts'
import { RunRecorder } from '../../support/run-log.ts'

const KEY = 'sk_live+"CANARY\\/4eC39HqLyjWDarjtT1zdp7dc=='

const bytes = Buffer.from(KEY)
const hex = bytes.toString('hex')

const spellings: [string, string][] = [
  ['as it is', KEY],
  ['cut at its end', KEY.slice(0, 20)],
  ['cut at its beginning', KEY.slice(-20)],
  ['reversed', [...KEY].reverse().join('')],
  ['percent-encoded', encodeURIComponent(KEY)],
  ['percent-encoded in small letters', encodeURIComponent(KEY).replace(/%../g, (at) => at.toLowerCase())],
  ['percent-encoded twice', encodeURIComponent(encodeURIComponent(KEY))],
  ['percent-encoded in every byte', hex.replace(/../g, '%$&')],
  ['a form field', new URLSearchParams({ key: KEY }).toString()],
  ['in hexadecimal', hex],
  ['in big hexadecimal', hex.toUpperCase()],
  ['as a dump of bytes', `<Buffer ${hex.replace(/../g, '$& ')}>`],
  ['as numbers', String([...bytes])],
  ['as JSON', JSON.stringify({ key: KEY })],
  ['as JSON with escaped slashes', JSON.stringify(KEY).replaceAll('/', '\\/')],
  ['as JSON in JSON', JSON.stringify(JSON.stringify(KEY))],
  ['as JSON of escapes', hex.replace(/../g, '\\u00$&')],
  ['as HTML', KEY.replaceAll('"', '&quot;')],
  ...['', 'a', 'ab', 'Bearer ', 'user:', 'x'.repeat(57)].flatMap((before): [string, string][] => {
    const text = Buffer.from(`${before}${KEY}${before}`)
    return [
      [`in base64 behind '${before}'`, text.toString('base64')],
      [`in base64 for URLs behind '${before}'`, text.toString('base64url')],
      [`in percent-encoded base64 behind '${before}'`, encodeURIComponent(text.toString('base64'))],
    ]
  }),
]

class WithGetter {
  get secret(): string {
    return KEY
  }
}
class WithHiddenGetter {}
Object.defineProperty(WithHiddenGetter.prototype, 'secret', { get: () => KEY, enumerable: false })

const ring: Record<string, unknown> = { list: [{}] }
ring['self'] = ring
ring['deep'] = { deep: { deep: { deep: { deep: { deep: [{ key: KEY }] } } } } }

const places: [string, unknown][] = [
  ['a message', new ApiError(`told ${KEY}`)],
  ['a stack', Object.assign(new Error('x'), { stack: `Error: x\n    at ${KEY}` })],
  ['a name', Object.assign(new Error('x'), { name: KEY })],
  ['a cause', new Error('x', { cause: new Error('y', { cause: { key: KEY } }) })],
  ['one of many errors', new AggregateError([new Error(KEY)], 'x')],
  ['a field of our error that is not enumerable', new ApiError('x', { serverMessage: KEY })],
  ['a field of our error', new ApiError('x', { serverCode: KEY })],
  ['a hidden property', Object.defineProperty({}, 'key', { value: KEY, enumerable: false })],
  ['an inherited property', Object.create({ key: KEY })],
  ['an accessor', { get: new WithGetter() }],
  ['an inherited hidden accessor', new WithHiddenGetter()],
  ['a property named by a symbol', { [Symbol('x')]: KEY }],
  ['the name of a symbol', { [Symbol(KEY)]: 1 }],
  ['the name of a property', { [KEY]: 1 }],
  ['a value behind a ring', ring],
  ['toJSON', { toJSON: () => ({ key: KEY }) }],
  ['a view of inspect', { [Symbol.for('nodejs.util.inspect.custom')]: () => KEY }],
  ['toString', { toString: () => KEY }],
  ['a map', new Map([[{ a: 1 }, KEY]])],
  ['a set', new Set([KEY])],
  ['headers', new Headers({ a: encodeURIComponent(KEY) })],
  ['a URL', new URL(`https://example.com/?key=${encodeURIComponent(KEY)}`)],
  ['bytes', new Uint8Array(bytes)],
  ['a buffer within an object', { body: Buffer.from(`{"a":"${KEY}"}`) }],
  ['a request', new Request('https://example.com', { headers: { authorization: `Bearer ${btoa(KEY)}` } })],
  ['a property of a function', Object.assign(() => 1, { key: KEY })],
  ['an array', [[[KEY]]]],
  ['the text itself', KEY],
]

it.each(spellings)('the detector knows a key %s', (_how, text) => {
  expect(spellingsIn(`before ${text} after`, KEY)).not.toEqual([])
  expect(leaks(KEY, { text })).not.toEqual([])
})

it.each(places)('the detector finds a key in %s', (place, value) => {
  expect(leaks(KEY, { value })).not.toEqual([])
  if (place !== 'toString') expect(leaks(KEY, { value: { error: value } })).not.toEqual([])
})

it('the quick detector finds every key that is not built while printing', () => {
  const made = ['a view of inspect', 'toString']
  for (const [place, value] of places)
    if (!made.includes(place)) expect(leaksAtAGlance(KEY, { value }), place).not.toEqual([])
})

it('the detector finds nothing without a key', () => {
  const error = new ApiError('sk_live', { serverCode: 'sk_live+' })
  const values = { error, headers: new Headers(), ring: 1 }
  expect(leaks(KEY, values)).toEqual([])
  expect(leaksAtAGlance(KEY, values)).toEqual([])
  expect(leaks('k', { text: 'a text with a k in it' })).toEqual([])
})

it("the detector finds a key in a store's row, and in the bytes of a database and its log", async () => {
  const facts = { version: 1, open: true, state: 'open', createdAt: 1, updatedAt: 1 } as const
  const row = { scope: 'a', id: 'b', ...facts, data: JSON.stringify({ key: KEY }) }
  const memory = new MemoryStore()
  await memory.insert(row)
  expect(leaks(KEY, { page: await memory.list('a', { limit: 10 }) })).not.toEqual([])

  const folder = temporaryFolder('leaks')
  const store = new SqliteStore({ path: join(folder, 'orders.db') })
  await store.insert({ ...row, id: 'c', data: '{}' })
  expect(leaksInFiles(KEY, folder)).toEqual([])
  await store.insert(row)
  // Until the store is closed, a row is only in the write-ahead log.
  expect(leaksInFiles(KEY, folder).join()).toMatch(/-wal/)
  await store.close()
  expect(leaksInFiles(KEY, folder).join()).toMatch(/orders\.db: /)
  writeFileSync(join(folder, 'log'), Buffer.from(KEY, 'utf16le'))
  expect(leaksInFiles(KEY, join(folder, 'log'))).not.toEqual([])
})

it('the detector decides invariant I8', () => {
  const log = new RunRecorder()
  log.secrets.push(KEY)
  log.printed.push('nothing')
  expect(silence(log)).toEqual([])
  log.printed.push(Buffer.from(`Bearer ${KEY}`).toString('base64url'))
  expect(silence(log)).toHaveLength(1)
})
