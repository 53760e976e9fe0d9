export const throwing = (message: string) => (): never => {
  throw new Error(message)
}

/** The error of a call that must fail. */
export async function errorOf(call: Promise<unknown>): Promise<unknown> {
  return await call.then(
    (value) => {
      throw new Error(`the call succeeded: ${JSON.stringify(value)}`)
    },
    (error: unknown) => error,
  )
}

/** A promise, and the function that resolves it. */
export function deferred<T = void>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {}
  const promise = new Promise<T>((done) => {
    resolve = done
  })
  return { promise, resolve }
}

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}
