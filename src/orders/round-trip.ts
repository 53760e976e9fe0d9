import type { Codec } from '../options.ts'
import { isStorable } from './row.ts'

/** A codec that cannot open what it seals. Says nothing of what it threw, which may hold a secret. */
export class RoundTripError extends TypeError {
  constructor() {
    super('decrypt() of the codec did not return the text that encrypt() was given')
  }
}

/**
 * A codec that opens the first text it seals before anybody stores it: a record that nobody can
 * read would be found out only after its order was charged. A failure is tried again.
 */
export function withRoundTrip(codec: Codec): Codec {
  let proven = false
  return {
    encrypt: async (text) => {
      const sealed = await codec.encrypt(text)
      // What is no text is refused by whoever asked for one.
      if (proven || !isStorable(sealed)) return sealed
      if (!(await opens(codec, sealed, text))) throw new RoundTripError()
      proven = true
      return sealed
    },
    decrypt: (text) => codec.decrypt(text),
  }
}

async function opens(codec: Codec, sealed: string, text: string): Promise<boolean> {
  try {
    return (await codec.decrypt(sealed)) === text
  } catch {
    return false
  }
}
