/** A function that throws an error with that message. */
export const throwing = (message: string) => (): never => {
  throw new Error(message)
}
