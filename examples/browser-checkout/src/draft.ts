/**
 * The reference of the order that is being filled in, which makes it one order: all tabs of the shop share it, it survives
 * reloads and crashes, and a new one begins only when the person was shown how the last order ended.
 */
const REFERENCE = 'harbour.reference'
const NOTES = 'harbour.notes'
const MOST_NOTES = 50

/** What the page shows about an order that the service does not repeat. Nothing depends on it. */
export interface Note {
  readonly title: string
  readonly quantity: number
  readonly target: string
  readonly currency: string
}

/** The reference of the order to come. */
export function draftReference(): string {
  const kept = localStorage.getItem(REFERENCE)
  if (kept !== null) return kept
  const fresh = crypto.randomUUID()
  localStorage.setItem(REFERENCE, fresh)
  return fresh
}

/** To be called when the person sees how the order ended: the next one is another. */
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
