import type { ContractRunner } from 'customer-ordering-sdk/stores/contract'

export class CollectingRunner implements ContractRunner {
  readonly #tests: { readonly title: string; readonly body: () => Promise<void> }[] = []

  readonly #only: string | undefined

  /** @param only the title of the one test to run; default all */
  constructor(only?: string) {
    this.#only = only
  }

  readonly describe = (_title: string, body: () => void): void => body()

  readonly it = (title: string, body: () => Promise<void>): void => {
    if (this.#only === undefined || this.#only === title) this.#tests.push({ title, body })
  }

  get titles(): readonly string[] {
    return this.#tests.map(({ title }) => title)
  }

  /** Runs all tests, one after the other, and returns the messages of those that failed, by title. */
  async run(): Promise<Map<string, string>> {
    const failures = new Map<string, string>()
    for (const { title, body } of this.#tests) {
      try {
        await body()
      } catch (error) {
        failures.set(title, error instanceof Error ? error.message : String(error))
      }
    }
    return failures
  }
}
