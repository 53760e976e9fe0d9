// Opens and closes a store at each path that the parent sends, and reports the result. Ends with
// its parent.
import { SqliteStore } from '../../../src/stores/sqlite.ts'

process.on('message', async (path: string) => {
  try {
    await new SqliteStore({ path }).close()
    process.send?.('opened')
  } catch (error) {
    process.send?.(String(error))
  }
})
process.send?.('ready')
