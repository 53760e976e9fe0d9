import { createRandom } from '../../src/sandbox/service/random.ts'

/** A stream of random choices. The same seed and stream always give the same ones. */
export class Draw {
  readonly #random: ReturnType<typeof createRandom>

  constructor(seed: number, stream: number) {
    // Mix twice, so that neighbouring seeds and streams are unrelated.
    this.#random = createRandom(Math.imul(seed ^ 0x5bd1e995, 0x9e3779b1) ^ Math.imul(stream + 1, 0x85ebca6b))
    this.#random.next()
  }

  /** From 0 (inclusive) to 1 (exclusive). */
  next(): number {
    return this.#random.next()
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  /** An integer from 0 (inclusive) to the bound (exclusive). */
  below(bound: number): number {
    return Math.floor(this.next() * bound)
  }

  /** An integer between two, both inclusive. */
  between(least: number, most: number): number {
    return least + this.below(most - least + 1)
  }

  pick<const T>(first: T, ...others: readonly T[]): T {
    const index = this.below(others.length + 1)
    return index === 0 ? first : (others[index - 1] ?? first)
  }

  weighted<const T>(first: readonly [T, number], ...others: readonly (readonly [T, number])[]): T {
    const all = [first, ...others]
    let left = this.next() * all.reduce((sum, [, weight]) => sum + weight, 0)
    for (const [value, weight] of all) {
      left -= weight
      if (left < 0) return value
    }
    return first[0]
  }

  subset<const T>(...values: readonly T[]): T[] {
    return values.filter(() => this.chance(0.5))
  }

  shuffled<T>(values: readonly T[]): T[] {
    return values
      .map((value) => [this.next(), value] as const)
      .sort(([a], [b]) => a - b)
      .map(([, value]) => value)
  }
}
