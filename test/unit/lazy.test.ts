import { describe, expect, it } from 'vitest'
import { Lazy, listOf } from '../../src/lazy.ts'
import { unhandledBy } from './unhandled.ts'

async function* numbers(count: number, onEnd = (): void => {}): AsyncGenerator<number, void, undefined> {
  try {
    for (let i = 0; i < count; i++) yield i
  } finally {
    onEnd()
  }
}

describe('a list that is awaited as an array', () => {
  it('an awaited list may have 10,000 items', async () => {
    expect(await listOf('orders.remembered', () => numbers(10_000))).toHaveLength(10_000)
  })

  it('an awaited list with more items throws an error that suggests iterating, and stops reading', async () => {
    let ended = false
    const list = listOf('orders.remembered', () =>
      numbers(10_001, () => {
        ended = true
      }),
    )
    await expect(list).rejects.toMatchObject({
      code: 'invalid_request',
      message:
        'orders.remembered() has more than 10,000 items, too many for an array. Iterate with for await.',
    })
    expect(ended).toBe(true)
  })
})

describe('something lazy', () => {
  it('a lazy promise rejects only for code that awaits it', async () => {
    let begun = 0
    const broken = new Lazy<number, number>(
      () => {
        begun++
        throw new Error('broken')
      },
      async (items) => {
        for await (const item of items) return item
        return 0
      },
    )
    expect(await unhandledBy(() => {})).toEqual([])
    expect(begun).toBe(0)
    const awaited = async (): Promise<void> => {
      await expect(broken).rejects.toThrow('broken')
      expect(await broken.then(undefined, () => 'caught')).toBe('caught')
      await expect(broken.finally()).rejects.toThrow('broken')
    }
    expect(await unhandledBy(awaited)).toEqual([])
    expect(begun).toBe(3)
  })
})
