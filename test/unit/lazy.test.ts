import { expect, it, vi } from 'vitest'
import { Lazy, listOf } from '../../src/lazy.ts'
import { throwing } from '../support/calls.ts'
import { unhandledBy } from './unhandled.ts'

async function* numbers(count: number, onEnd = (): void => {}): AsyncGenerator<number, void, undefined> {
  try {
    for (let i = 0; i < count; i++) yield i
  } finally {
    onEnd()
  }
}

it('an awaited list may have 10,000 items', async () => {
  expect(await listOf('orders.remembered', () => numbers(10_000))).toHaveLength(10_000)
})

it('an awaited list with more items throws an error that suggests iterating, and stops reading', async () => {
  const onEnd = vi.fn()
  const list = listOf('orders.remembered', () => numbers(10_001, onEnd))
  await expect(list).rejects.toMatchObject({
    code: 'invalid_request',
    message: 'orders.remembered() has more than 10,000 items, too many for an array. Iterate with for await.',
  })
  expect(onEnd).toHaveBeenCalledOnce()
})

it('a lazy promise rejects only for code that awaits it', async () => {
  const begin = vi.fn(throwing('broken'))
  const broken = new Lazy<number, number>(begin, async (items) => {
    for await (const item of items) return item
    return 0
  })
  expect(await unhandledBy(() => {})).toEqual([])
  expect(begin).not.toHaveBeenCalled()
  const awaited = async (): Promise<void> => {
    await expect(broken).rejects.toThrow('broken')
    expect(await broken.then(undefined, () => 'caught')).toBe('caught')
    await expect(broken.finally()).rejects.toThrow('broken')
  }
  expect(await unhandledBy(awaited)).toEqual([])
  expect(begin).toHaveBeenCalledTimes(3)
})
