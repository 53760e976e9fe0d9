/** Finds names in a request that were meant to be known names. */
import { ownValue } from '../../defined.ts'
import type { Issue } from '../../errors/classes.ts'

const PLACES: Readonly<Record<string, string>> = {
  serviceId: 'serviceId',
  target: 'target',
  quantity: 'quantity',
  metadata: 'metadata',
  externalOrderId: 'metadata.externalOrderId',
  idempotencyKey: 'options',
  allowDuplicate: 'options',
  signal: 'options',
  timeout: 'options',
  totalTimeout: 'options',
  maxRetries: 'options',
  headers: 'options',
}

/** With one wrong letter, a shorter name may be another word: `readers` is not `headers`. */
const LONG_NAME = 8

const KNOWN = Object.keys(PLACES).map((name) => ({ name, place: PLACES[name] ?? '', folded: folded(name) }))

/** Paths that were found harmless. Programs use few names, so a call rarely compares any. */
const harmless = new Set<string>()
const MAX_HARMLESS = 1000

/**
 * A misspelled reference or key does not identify the order: a repeated call could place, and
 * charge, a second order. Other unknown fields are sent unchanged.
 */
export function misnamedFields(request: unknown): readonly Issue[] {
  const issues: Issue[] = []
  collect(issues, request, '')
  collect(issues, ownValue(request, 'metadata'), 'metadata.')
  return issues
}

/** In `metadata`, the caller chooses all names except `externalOrderId`. */
function collect(issues: Issue[], fields: unknown, prefix: string): void {
  if (typeof fields !== 'object' || fields === null) return
  for (const name of Object.keys(fields)) {
    const path = prefix + name
    if (PLACES[name] === path || harmless.has(path)) continue
    const form = folded(name)
    const meant = KNOWN.find(({ place, folded }) => place.startsWith(prefix) && means(form, folded))
    if (meant === undefined) {
      if (harmless.size === MAX_HARMLESS) harmless.clear()
      harmless.add(path)
      continue
    }
    const message =
      meant.place === 'options'
        ? `is a call option: pass ${meant.name} in the second argument`
        : `must be named ${meant.place}`
    issues.push({ path, message })
  }
}

function means(a: string, b: string): boolean {
  return a === b || (b.length >= LONG_NAME && isOneEdit(a, b))
}

/** True if one letter was changed, added, removed or swapped with its neighbour. */
function isOneEdit(a: string, b: string): boolean {
  if (Math.abs(a.length - b.length) > 1) return false
  let start = 0
  while (start < a.length && a[start] === b[start]) start++
  const [restA, restB] = [a.slice(start), b.slice(start)]
  if (a.length < b.length) return restA === restB.slice(1)
  if (a.length > b.length) return restA.slice(1) === restB
  const swapped = restA[0] === restB[1] && restA[1] === restB[0] && restA.slice(2) === restB.slice(2)
  return swapped || restA.slice(1) === restB.slice(1)
}

function folded(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '')
}
