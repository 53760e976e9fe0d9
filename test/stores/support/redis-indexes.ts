import { expect } from 'vitest'
import { ioredis } from './redis-clients.ts'

/**
 * Looks at everything that stores have in a server, past them: every row must be in those indexes that it belongs in
 * and in no others, no index may name a row that is not there, and nothing may expire.
 */
export async function expectIndexed(port: number, rows?: number): Promise<void> {
  const client = new (ioredis().Redis)({ host: '127.0.0.1', port })
  try {
    const call = async (command: string, ...parameters: (string | number)[]) =>
      (await client.call(command, ...parameters)) as string[]
    const keys = (await call('keys', '*')).filter((key) => key.includes('}:'))
    const indexes = new Map<string, string[]>()
    const expected = new Map<string, string[]>()
    let count = 0
    for (const key of keys) {
      expect(await call('pttl', key), key).toBe(-1)
      const { base, name, id } = splitKey(key)
      if (name !== 'row') {
        indexes.set(key, await call('zrange', key, 0, -1))
        continue
      }
      count++
      const head = String(await call('getrange', key, 0, 200)).split('\n', 1)[0] ?? ''
      const [, , open, state = '', , updatedAt = ''] = head.split(' ')
      const entry = `${updatedAt} ${id}`
      const add = (index: string, member: string) =>
        expected.set(base + index, [...(expected.get(base + index) ?? []), member].sort())
      add('list', entry)
      if (open === '1') add('open', id)
      else if (state !== 'open') add(state, entry)
    }
    expect(indexes).toEqual(expected)
    if (rows !== undefined) expect(count).toBe(rows)
  } finally {
    client.disconnect()
  }
}

function splitKey(key: string): { readonly base: string; readonly name: string; readonly id: string } {
  // The last one: a prefix that the client adds may have a tag of its own.
  const end = key.lastIndexOf('}:') + 2
  const [name = '', ...id] = key.slice(end).split(':')
  return { base: key.slice(0, end), name, id: id.join(':') }
}
