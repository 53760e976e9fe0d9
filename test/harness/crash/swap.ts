/** Tools for seeded bugs in modules that were loaded with `seams.ts`. */

type Replaceable = ((...args: never) => unknown) | (abstract new (...args: never) => object)

/** Replaces an exported function or class of a module of `src` for all importers. */
export function swap<T extends Replaceable>(original: T, replace: (original: T) => T): void {
  const seams: unknown = Reflect.get(globalThis, Symbol.for('customer-ordering-sdk.seams'))
  const assign: unknown = seams instanceof Map ? seams.get(original) : undefined
  if (typeof assign !== 'function') throw new Error(`${original.name} was not loaded with seams`)
  assign(replace(original))
}

type MethodName<T> = { [K in keyof T]: T[K] extends (...args: never) => unknown ? K : never }[keyof T]

export function swapMethod<T extends object, K extends MethodName<T>>(
  { prototype }: { readonly prototype: T },
  name: K,
  replace: (original: T[K]) => T[K],
): void {
  Object.defineProperty(prototype, name, { configurable: true, value: replace(prototype[name]) })
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
