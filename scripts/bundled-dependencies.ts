/** A text of each dependency that stays in a bundle, minified or not, wherever its code is in there. */
const MARKS: Readonly<Record<string, string>> = {
  ky: 'Request failed with',
  zod: '_zod',
  uuid: 'Invalid UUID',
}

export const DEPENDENCIES: readonly string[] = Object.keys(MARKS)

/** The dependencies whose code is in a bundle. The build for Node has them in its own files, so paths would not tell. */
export function dependenciesIn(bundle: string): readonly string[] {
  return Object.entries(MARKS).flatMap(([name, mark]) => (bundle.includes(mark) ? [name] : []))
}
