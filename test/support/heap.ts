import { queryObjects, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

// V8 drops code that nobody called for a while, about 0.9 MB at once, which would hide what a client keeps.
setFlagsFromString('--no-flush-bytecode')
setFlagsFromString('--expose-gc')
/** Collects what nobody keeps. */
export const collect = runInNewContext('gc') as () => void

/** Bytes of this thread, within its heap and outside of it. */
export function used(): number {
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** What the process keeps, once all that can go is gone. */
export async function kept(): Promise<{ readonly bytes: number; readonly objects: number }> {
  // What finalizers let go of goes in the next round.
  for (let round = 0; round < 3; round++) {
    collect()
    await new Promise((resolve) => setImmediate(resolve))
  }
  const objects = queryObjects(Object, { format: 'count' })
  return { bytes: used(), objects }
}
