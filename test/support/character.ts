import fc from 'fast-check'

const [FIRST, COUNT] = [0xd800, 0x800]

/**
 * Any character, but no half of a surrogate pair. Generates what fast-check's unit `binary` does,
 * whose tables cost each worker a second.
 */
export const character: fc.Arbitrary<string> = fc.nat({ max: 0x10ffff - COUNT }).map(
  (code) => String.fromCodePoint(code < FIRST ? code : code + COUNT),
  // fast-check tries names such as `__proto__` only if it can tell that they consist of these units.
  (text) => {
    const code = typeof text === 'string' ? text.codePointAt(0) : undefined
    if (code === undefined || text !== String.fromCodePoint(code)) throw new Error('not a character')
    return code < FIRST ? code : code - COUNT
  },
)
