import { StoreError } from '../../errors/classes.ts'
import { isRefusedInScript } from './failures.ts'

export interface Vouched {
  readonly persistence: boolean
  readonly eviction: boolean
}

/** An inspection ends before the call that needs it writes anything. */
const NOT_APPLIED = { applied: false } as const

export interface Inspected {
  /** True if there may be other nodes, with different settings. */
  readonly cluster: boolean
}

/** Throws if the server is a replica, has no append-only file, or may evict orders. */
export async function inspect(readInfo: () => Promise<string>, vouched: Vouched): Promise<Inspected> {
  let text = ''
  try {
    text = await readInfo()
  } catch (error) {
    if (!isRefusedInScript(error)) throw error
  }
  const facts = new Map(
    text.split(/\r?\n/).flatMap((line): [string, string][] => {
      const [name, value] = line.split(':', 2)
      return name === undefined || value === undefined ? [] : [[name, value]]
    }),
  )
  const role = facts.get('role')
  if (role !== undefined && role !== 'master') {
    throw new StoreError(
      'Cannot use this Redis server as an order store: it is a replica. Connect the client to the primary.',
    )
  }
  if (!vouched.persistence) checkPersistence(facts.get('aof_enabled'))
  if (!vouched.eviction) checkEviction(facts.get('maxmemory_policy'))
  return { cluster: facts.get('cluster_enabled') !== '0' }
}

function checkPersistence(enabled: string | undefined): void {
  if (enabled === '1') return
  if (enabled === undefined) {
    throw new StoreError(
      'Cannot use this Redis server as an order store: INFO does not return `aof_enabled`. Make sure ' +
        'that the server has `appendonly yes`, or persists every write in another way, then pass ' +
        "`persistence: 'assume'`.",
      NOT_APPLIED,
    )
  }
  throw new StoreError(
    'Cannot use this Redis server as an order store: with its setting `appendonly no`, a restart ' +
      "can lose orders. Set `appendonly yes`, or pass `persistence: 'assume'` if the server persists " +
      'every write in another way.',
    NOT_APPLIED,
  )
}

function checkEviction(policy: string | undefined): void {
  // The volatile policies remove only keys with a time to live. The store's keys never have one.
  if (policy === 'noeviction' || policy?.startsWith('volatile-')) return
  if (policy === undefined) {
    throw new StoreError(
      'Cannot use this Redis server as an order store: INFO does not return `maxmemory_policy`. Make ' +
        "sure that the policy is `noeviction`, then pass `eviction: 'assume'`.",
      NOT_APPLIED,
    )
  }
  throw new StoreError(
    `Cannot use this Redis server as an order store: with its setting \`maxmemory-policy ${policy}\`, ` +
      'it may remove orders when its memory is full. Set `maxmemory-policy noeviction`, or pass ' +
      "`eviction: 'assume'` if its memory can never fill up.",
    NOT_APPLIED,
  )
}
