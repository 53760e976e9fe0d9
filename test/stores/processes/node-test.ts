// Runs the contract under `node:test` with both stores. runners.test.ts starts it.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { storeContract } from '../../../src/stores/contract.ts'
import { MemoryStore } from '../../../src/stores/memory.ts'
import { SqliteStore } from '../../../src/stores/sqlite.ts'

// Short histories, because other tests run long ones.
const history = { clients: 2, operations: 20 }
const directory = mkdtempSync(join(tmpdir(), 'stores-'))
after(() => rmSync(directory, { recursive: true }))

describe('MemoryStore', () => {
  storeContract({ test: { describe, it }, history, createStore: () => new MemoryStore() })
})

describe('SqliteStore', () => {
  let files = 0
  const open = (): SqliteStore => new SqliteStore({ path: join(directory, `${files}.db`) })
  const createStore = (): SqliteStore => {
    files++
    return open()
  }
  storeContract({ test: { describe, it }, history, createStore, openSecond: open, reopenStore: open })
})
