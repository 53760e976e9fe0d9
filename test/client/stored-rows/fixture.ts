import type { Decisions, StoredRows } from './scenes.ts'

export const FIXTURE: URL = new URL('../../fixtures/stored-rows.json', import.meta.url)

/** Rows by their origin, with the decisions of a client that finds them. */
export type Fixture = Readonly<Record<string, StoredRows & { readonly decisions: Decisions }>>
