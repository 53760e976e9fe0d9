import { describe, expect, it } from 'vitest'
import { LiveCalls } from '../../../../src/orders/record/live.ts'
import { MemoryStore } from '../../../../src/stores/memory.ts'

/** True if a promise has settled once all pending work has run. */
async function settled(promise: Promise<unknown> | undefined): Promise<boolean> {
  let done = false
  promise?.then(() => {
    done = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  return done
}

describe('a call that is placing an order', () => {
  it('every client of the store and scope finds a live call until it ends', async () => {
    const store = new MemoryStore()
    const calls = new LiveCalls(store, 's')
    expect(calls.get('id')).toBeUndefined()
    const end = calls.enter('id')
    const found = new LiveCalls(store, 's').get('id')
    expect(found).toBeDefined()
    expect(await settled(found)).toBe(false)
    end()
    expect(await settled(found)).toBe(true)
    expect(calls.get('id')).toBeUndefined()
  })

  it('a live call is not found under another name, in another scope or in another store', () => {
    const store = new MemoryStore()
    new LiveCalls(store, 's').enter('id')
    expect(new LiveCalls(store, 's').get('other')).toBeUndefined()
    expect(new LiveCalls(store, 't').get('id')).toBeUndefined()
    expect(new LiveCalls(new MemoryStore(), 's').get('id')).toBeUndefined()
  })

  it('all live calls of a scope are awaited if the scope must be idle', async () => {
    const store = new MemoryStore()
    const calls = new LiveCalls(store, 's')
    const ends = [calls.enter('a'), calls.enter('b')]
    new LiveCalls(store, 't').enter('c')
    const idle = calls.idle()
    expect(await settled(idle)).toBe(false)
    ends[0]?.()
    expect(await settled(idle)).toBe(false)
    ends[1]?.()
    expect(await settled(idle)).toBe(true)
    expect(await settled(calls.idle())).toBe(true)
  })
})
