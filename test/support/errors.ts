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
