import { describe, expect, it } from 'vitest'
import { type LiveCalls, liveCalls } from '../../../src/orders/live.ts'
import { MemoryStore } from '../../../src/stores/memory.ts'

const call = { fingerprint: 'f', idempotencyKey: undefined, request: { quantity: 1 } }

/** True if a promise has settled once all pending work has run. */
async function settled(promise: Promise<unknown>): Promise<boolean> {
  let done = false
  promise.then(() => {
    done = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  return done
}

describe('a call that is placing an order', () => {
  it('every client of the store and scope finds a live call until it ends', async () => {
    const store = new MemoryStore()
    const calls: LiveCalls<string> = liveCalls(store, 's')
    expect(calls.get('id')).toBeUndefined()
    const end = calls.enter('id', call)
    const found = liveCalls<string>(store, 's').get('id')
    expect(found).toMatchObject(call)
    expect(await settled(Promise.resolve(found?.ended))).toBe(false)
    end('the order')
    expect(await found?.ended).toBe('the order')
    expect(calls.get('id')).toBeUndefined()
  })

  it('a live call is not found under another name, in another scope or in another store', () => {
    const store = new MemoryStore()
    liveCalls(store, 's').enter('id', call)
    expect(liveCalls(store, 's').get('other')).toBeUndefined()
    expect(liveCalls(store, 't').get('id')).toBeUndefined()
    expect(liveCalls(new MemoryStore(), 's').get('id')).toBeUndefined()
  })

  it('a live call is awaited if its scope must be idle', async () => {
    const store = new MemoryStore()
    const calls = liveCalls<string>(store, 's')
    const ends = [calls.enter('a', call), calls.enter('b', call)]
    liveCalls(store, 't').enter('c', call)
    const idle = calls.idle()
    expect(await settled(idle)).toBe(false)
    ends[0]?.(undefined)
    expect(await settled(idle)).toBe(false)
    ends[1]?.('done')
    expect(await settled(idle)).toBe(true)
    expect(await settled(calls.idle())).toBe(true)
  })
})
