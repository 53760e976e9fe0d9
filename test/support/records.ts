import { rowIdOf } from '../../src/identity/keys.ts'
import { type JournalRecord, orderOf } from '../../src/orders/record/record.ts'
import { decodeRow } from '../../src/orders/record/row.ts'
import { platformRuntime } from '../../src/runtime.ts'
import type { OrderStore } from '../../src/stores/store.ts'

/** The record of a slot, if there is a row that was not emptied. Throws if the row is unreadable. */
export async function recordIn(
  store: OrderStore,
  scope: string,
  slot: string,
): Promise<(JournalRecord & { readonly readable: boolean }) | undefined> {
  const row = await store.get(scope, rowIdOf(platformRuntime.deriveId, slot))
  const [server, account]: [string, string | null] = JSON.parse(scope)
  const owner = { derive: platformRuntime.deriveId, server, account: account ?? undefined }
  const record = row && (await decodeRow(row, undefined, owner))
  if (record === 'forgotten') return undefined
  if (typeof record === 'string') throw new Error(`the row of ${slot} is ${record}`)
  return record && { ...record, readable: orderOf(record) !== undefined }
}
