/** Replaces uuid-v5.ts in builds for browsers, which have no synchronous SHA-1. */
import { v5 } from 'uuid'
import { KEY_NAMESPACE } from './identity/keys.ts'

export function uuidV5(name: string): string {
  // Passes bytes: the uuid package encodes strings slowly.
  return v5(new TextEncoder().encode(name), KEY_NAMESPACE)
}
