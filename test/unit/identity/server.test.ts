import { expect, test } from 'vitest'
import { normalizeServer } from '../../../src/identity/keys.ts'

test.each([
  ['https://api.example.com', 'https://api.example.com'],
  ['HTTPS://API.Example.COM', 'https://api.example.com'],
  ['https://api.example.com/', 'https://api.example.com'],
  ['https://api.example.com//', 'https://api.example.com'],
  ['https://api.example.com:443', 'https://api.example.com'],
  ['https://api.example.com.', 'https://api.example.com'],
  ['  https://api.example.com\n', 'https://api.example.com'],
  ['https:\\\\api.example.com\\', 'https://api.example.com'],
  ['http://api.example.com:80/', 'http://api.example.com'],
  ['http://api.example.com:443/', 'http://api.example.com:443'],
  ['https://api.example.com:8443/Ordering/', 'https://api.example.com:8443/Ordering'],
  ['https://api.example.com/a/./b/../c/', 'https://api.example.com/a/c'],
  ['https://api.example.com/a/%2e%2E/c', 'https://api.example.com/c'],
  ['https://api.example.com/%7euser/%41%2d', 'https://api.example.com/~user/A-'],
  ['https://api.example.com/%7Euser/%5F', 'https://api.example.com/~user/_'],
  ['https://api.example.com/a%2fb', 'https://api.example.com/a%2Fb'],
  ['https://api.example.com/größe', 'https://api.example.com/gr%C3%B6%C3%9Fe'],
  ['https://api.example.com/gr%c3%b6%c3%9fe', 'https://api.example.com/gr%C3%B6%C3%9Fe'],
  ['https://BÜCHER.example', 'https://xn--bcher-kva.example'],
  ['https://xn--bcher-kva.example', 'https://xn--bcher-kva.example'],
  ['http://[0:0::1]:4010/', 'http://[::1]:4010'],
  ['http://127.1/', 'http://127.0.0.1'],
])('the server label of %j is %s', (spelling, label) => {
  expect(normalizeServer(spelling)).toBe(label)
  expect(normalizeServer(label)).toBe(label)
})

test('server labels contain no user name, password, query or fragment', () => {
  expect(normalizeServer('https://user:secret@api.example.com/v?token=secret#secret')).toBe(
    'https://api.example.com/v',
  )
})

test.each(['', 'api.example.com', '/v1', 'ftp://api.example.com', 'https://', 'https://u:secret@[oops'])(
  'the server label %j is rejected without being quoted',
  (spelling) => {
    expect(() => normalizeServer(spelling)).toThrow(
      new TypeError('baseUrl is not an absolute http or https address'),
    )
  },
)
