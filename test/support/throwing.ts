export const throwing = (message: string) => (): never => {
  throw new Error(message)
}
