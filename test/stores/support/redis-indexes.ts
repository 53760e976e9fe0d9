import { expect } from 'vitest'
import { ioredis } from './redis-clients.ts'

/**
 * Checks the keys of all stores in a server directly: every row must be in exactly the right
 * indexes, no index may name a missing row, and no key may expire.
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
  // Take the last tag, because a prefix of the client may have its own tag.
  const end = key.lastIndexOf('}:') + 2
  const [name = '', ...id] = key.slice(end).split(':')
  return { base: key.slice(0, end), name, id: id.join(':') }
}
