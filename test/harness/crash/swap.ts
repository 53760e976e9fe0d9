/** Tools for seeded bugs in modules that were loaded with `seams.ts`. */

type Replaceable = ((...args: never) => unknown) | (abstract new (...args: never) => object)

/** Replaces an exported function or class of a module of `src` for all importers. */
export function swap<T extends Replaceable>(original: T, replace: (original: T) => T): void {
  const seams: unknown = Reflect.get(globalThis, Symbol.for('customer-ordering-sdk.seams'))
  const assign: unknown = seams instanceof Map ? seams.get(original) : undefined
  if (typeof assign !== 'function') throw new Error(`${original.name} was not loaded with seams`)
  assign(replace(original))
}

/** Replaces an exported function. The replacement gets the original. */
export function around<Args extends readonly unknown[], Result>(
  original: (...args: Args) => Result,
  replace: (original: (...args: Args) => Result, ...args: Args) => Result,
): void {
  swap(
    original,
    () =>
      (...args) =>
        replace(original, ...args),
  )
}

type Method<T, K extends keyof T> = Extract<T[K], (...args: never[]) => unknown>

/** Replaces a method of a class. The replacement gets the original, bound to the object. */
export function swapMethod<T extends object, K extends keyof T>(
  { prototype }: { readonly prototype: T },
  name: K,
  replace: (this: T, original: Method<T, K>, ...args: Parameters<Method<T, K>>) => ReturnType<Method<T, K>>,
): void {
  const original: unknown = prototype[name]
  if (typeof original !== 'function') throw new TypeError(`${String(name)} is no method`)
  Object.defineProperty(prototype, name, {
    configurable: true,
    value(this: T, ...args: unknown[]) {
      return Reflect.apply(replace, this, [original.bind(this), ...args])
    },
  })
}

export function put<Row extends object, K extends string>(
  table: Readonly<Record<K, Row>>,
  key: K,
  change: Partial<Row>,
): void {
  Object.assign(table[key], change)
}

type Cells = Readonly<Record<string, Readonly<Record<string, readonly unknown[]>>>>

/** Replaces the entries of the cells of a command, in every phase. */
export function changeCells(
  rules: Cells,
  changes: (command: string) => boolean,
  change: (entries: readonly unknown[]) => readonly unknown[],
): void {
  for (const row of Object.values(rules))
    for (const [command, cell] of Object.entries(row))
      if (changes(command)) Object.assign(row, { [command]: change(cell) })
}

/** Removes a condition from the cells of one command, or of all. */
export function dropRule(rules: Cells, condition: unknown, of?: string): void {
  changeCells(
    rules,
    (command) => of === undefined || of === command,
    (cell) => cell.filter((entry) => !(Array.isArray(entry) && entry[0] === condition)),
  )
}
