import { StoreError } from '../../errors/classes.ts'
import { isRefusedInScript } from './failures.ts'

export interface Vouched {
  readonly persistence: boolean
  readonly eviction: boolean
}

/** Throws if the server is a replica, has no append-only file, or may evict orders. */
export async function inspect(readInfo: () => Promise<string>, vouched: Vouched): Promise<void> {
  let text = ''
  try {
    text = await readInfo()
  } catch (error) {
    if (!isRefusedInScript(error)) throw error
  }
  const fact = (name: string): string | undefined => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(text)?.[1]
  const role = fact('role')
  if (role !== undefined && role !== 'master')
    throw new StoreError(`${CANNOT_USE}: it is a replica. Connect the client to the primary.`)
  const persistence = fact('aof_enabled')
  const eviction = fact('maxmemory_policy')
  const problem =
    (vouched.persistence || persistence === '1' ? undefined : unsafePersistence(persistence)) ??
    // The volatile policies remove only keys with a time to live. The store's keys never have one.
    (vouched.eviction || /^(noeviction|volatile-.*)$/.test(eviction ?? '')
      ? undefined
      : unsafeEviction(eviction))
  // An inspection ends before the call that needs it writes anything.
  if (problem !== undefined) throw new StoreError(`${CANNOT_USE}: ${problem}`, { applied: false })
}

const CANNOT_USE = 'Cannot use this Redis server as an order store'

function unsafePersistence(enabled: string | undefined): string {
  return enabled === undefined
    ? 'INFO does not return `aof_enabled`. Make sure that the server has `appendonly yes`, or persists ' +
        "every write in another way, then pass `persistence: 'assume'`."
    : 'with its setting `appendonly no`, a restart can lose orders. Set `appendonly yes`, or pass ' +
        "`persistence: 'assume'` if the server persists every write in another way."
}

function unsafeEviction(policy: string | undefined): string {
  return policy === undefined
    ? 'INFO does not return `maxmemory_policy`. Make sure that the policy is `noeviction`, then pass ' +
        "`eviction: 'assume'`."
    : `with its setting \`maxmemory-policy ${policy}\`, it may remove orders when its memory is full. ` +
        "Set `maxmemory-policy noeviction`, or pass `eviction: 'assume'` if its memory can never fill up."
}
