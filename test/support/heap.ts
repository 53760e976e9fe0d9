import { queryObjects, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

// Keep compiled code: V8 drops about 0.9 MB of code that was not called for a while, which would
// hide memory that a client keeps.
setFlagsFromString('--no-flush-bytecode')
setFlagsFromString('--expose-gc')
export const collect = runInNewContext('gc') as () => void

/** Bytes of this thread, inside and outside its heap. */
export function used(): number {
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** Bytes that the process keeps after all garbage is collected. */
export async function kept(): Promise<{ readonly bytes: number; readonly objects: number }> {
  // Collect again, because finalizers release more objects.
  for (let round = 0; round < 3; round++) {
    collect()
    await new Promise((resolve) => setImmediate(resolve))
  }
  const objects = queryObjects(Object, { format: 'count' })
  return { bytes: used(), objects }
}
