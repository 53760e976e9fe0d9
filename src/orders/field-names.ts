import { ownValue } from '../defined.ts'
import type { Issue } from '../errors.ts'
import { edits } from '../settings/readers.ts'

/** Where each known name belongs. */
const PLACES: Readonly<Record<string, string>> = {
  serviceId: 'serviceId',
  target: 'target',
  quantity: 'quantity',
  metadata: 'metadata',
  externalOrderId: 'metadata.externalOrderId',
  idempotencyKey: 'options',
  allowDuplicate: 'options',
  service: 'options',
  within: 'options',
  signal: 'options',
  timeout: 'options',
  totalTimeout: 'options',
  maxRetries: 'options',
  headers: 'options',
}

/** Shorter names have neighbours that mean something else: `services`, `budget`, `readers`. */
const LONG = 8

/**
 * Fields that can only be meant as something else. Sent as they are, they would name nothing and bind nothing: two such
 * calls could be two orders, each charged. A name means a known one if they differ in case and punctuation alone or, from
 * eight letters on, in one letter that is wrong, missing, too many or swapped with its neighbour. Any other unknown field is
 * sent as it is. Reads names only, no values.
 */
export function misnamedFields(request: unknown): readonly Issue[] {
  const issues: Issue[] = []
  collect(issues, request, '')
  collect(issues, ownValue(request, 'metadata'), 'metadata.')
  return issues
}

/** In `metadata`, only its own known name is looked for: the others there are the caller's. */
function collect(issues: Issue[], fields: unknown, prefix: string): void {
  if (typeof fields !== 'object' || fields === null) return
  for (const name of Object.keys(fields)) {
    const path = prefix + name
    if (PLACES[name] === path) continue
    const meant = Object.keys(PLACES).find((known) => PLACES[known]?.startsWith(prefix) && means(name, known))
    if (meant === undefined) continue
    const message =
      PLACES[meant] === 'options'
        ? `is the option ${meant} of the call: pass it in the second argument`
        : `must be spelled ${PLACES[meant]}`
    issues.push({ path, message })
  }
}

function means(name: string, known: string): boolean {
  const [a, b] = [folded(name), folded(known)]
  return a === b || (b.length >= LONG && Math.abs(a.length - b.length) <= 1 && edits(a, b) <= 1)
}

function folded(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '')
}
