/** A string of each dependency that stays in every bundle with its code, minified or not. */
const MARKS: Readonly<Record<string, string>> = {
  ky: 'Request failed with',
  zod: '_zod',
  uuid: 'Invalid UUID',
}

export const DEPENDENCIES: readonly string[] = Object.keys(MARKS)

/**
 * The dependencies whose code is in a bundle. Paths do not show them, because the build for Node
 * contains their code in its own files.
 */
export function dependenciesIn(bundle: string): readonly string[] {
  return Object.entries(MARKS).flatMap(([name, mark]) => (bundle.includes(mark) ? [name] : []))
}
