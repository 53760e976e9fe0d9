import { rowIdOf } from '../../src/orders/identity.ts'
import type { JournalRecord } from '../../src/orders/record.ts'
import { decodeRow } from '../../src/orders/row.ts'
import { platformRuntime } from '../../src/runtime.ts'
import type { OrderStore } from '../../src/stores/store.ts'

/** The record of a slot, if there is a row. Throws if the row is unreadable. */
export async function recordIn(
  store: OrderStore,
  scope: string,
  slot: string,
): Promise<JournalRecord | undefined> {
  const row = await store.get(scope, rowIdOf(platformRuntime.deriveId, slot))
  const record = row && (await decodeRow(row, undefined))
  if (typeof record === 'string') throw new Error(`the row of ${slot} is ${record}`)
  return record
}
