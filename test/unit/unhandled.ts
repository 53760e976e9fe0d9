/** Runs `act`, and returns the unhandled rejections that it causes. */
export async function unhandledBy(act: () => unknown): Promise<unknown[]> {
  const unhandled: unknown[] = []
  const onUnhandled = (error: unknown): void => void unhandled.push(error)
  process.on('unhandledRejection', onUnhandled)
  try {
    await act()
    await new Promise((resolve) => setImmediate(resolve))
    return unhandled
  } finally {
    process.off('unhandledRejection', onUnhandled)
  }
}
