import { expect, onTestFinished, test, vi } from 'vitest'
import { platformRuntime } from '../../src/runtime.ts'

test('a timer longer than 31 bits does not fire immediately (Azure/azure-sdk-for-js #39130)', () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const fired = vi.fn()
  platformRuntime.setTimer(fired, 2 ** 31)
  vi.advanceTimersByTime(24 * 24 * 3600 * 1000)
  expect(fired).not.toHaveBeenCalled()
})
