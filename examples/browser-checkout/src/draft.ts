/**
 * The reference of the order that is being filled in. All tabs of the shop share it, and it
 * survives reloads and crashes. A new reference begins only after the person has seen the outcome
 * of the last order.
 */
const REFERENCE = 'harbour.reference'
const NOTES = 'harbour.notes'
const MOST_NOTES = 50

/** Details of an order that the service does not return, for display only. */
export interface Note {
  readonly title: string
  readonly quantity: number
  readonly target: string
  readonly currency: string
}

/** Returns the reference of the next order. */
export function draftReference(): string {
  const kept = localStorage.getItem(REFERENCE)
  if (kept !== null) return kept
  const fresh = crypto.randomUUID()
  localStorage.setItem(REFERENCE, fresh)
  return fresh
}

/** Call this when the person sees the outcome of the order: the next order gets a new reference. */
export function concludeDraft(reference: string): void {
  if (localStorage.getItem(REFERENCE) === reference) localStorage.removeItem(REFERENCE)
}

export function writeNote(reference: string, note: Note): void {
  const others = Object.entries(readNotes()).filter(([key]) => key !== reference)
  localStorage.setItem(
    NOTES,
    JSON.stringify(Object.fromEntries([...others.slice(1 - MOST_NOTES), [reference, note]])),
  )
}

export function noteOf(reference: string | undefined): Note | undefined {
  return reference === undefined ? undefined : readNotes()[reference]
}

function readNotes(): Readonly<Record<string, Note>> {
  return JSON.parse(localStorage.getItem(NOTES) ?? '{}')
}
