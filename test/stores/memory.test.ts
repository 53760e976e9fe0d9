import { storeContract } from 'customer-ordering-sdk/stores/contract'
import { describe, it } from 'vitest'
import { MemoryStore } from '../../src/stores/memory.ts'

describe('MemoryStore', () => {
  storeContract({ test: { describe, it }, createStore: () => new MemoryStore() })
})
