declare module 'virtual:client-tests' {
  /** Loads a file of test/client, by its name. */
  export const files: Readonly<Record<string, () => void>>
}
