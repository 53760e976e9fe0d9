import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { platformRuntime } from '../../src/runtime.ts'

describe('a timer of the platform', () => {
  test('a timer longer than 31 bits does not fire immediately (Azure/azure-sdk-for-js #39130)', () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    let fired = false
    platformRuntime.setTimer(() => {
      fired = true
    }, 2 ** 31)
    vi.advanceTimersByTime(24 * 24 * 3600 * 1000)
    expect(fired).toBe(false)
  })
})
