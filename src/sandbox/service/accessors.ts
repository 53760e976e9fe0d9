import type { SandboxBehaviour } from './behaviour.ts'
import type { SandboxCharge } from './state.ts'
import type { World } from './world.ts'

/** The fields of a sandbox that change over time. */
interface Changing {
  readonly apiKey: string
  readonly organizationApiKey: string
  readonly behaviour: SandboxBehaviour
  readonly ledger: readonly SandboxCharge[]
}

interface Source {
  readonly world: World
  /** Shown if the current state lacks the initial personal API key. */
  readonly apiKey: string
  /** Shown if the current state lacks the initial organization's API key. */
  readonly organizationApiKey: string
}

/** This property is not enumerable, so that printing or copying a sandbox omits it. */
const SOURCE = Symbol('source')

/**
 * All sandboxes share these getters. A getter in an object literal would keep the sandbox's clock,
 * and everything that the clock references, in memory until the next full garbage collection
 * (measured with Node 24).
 */
const accessors: { readonly [K in keyof Changing]: TypedPropertyDescriptor<Changing[K]> } = {
  apiKey: accessor<'apiKey'>(({ world, apiKey }) => secretOf(world, 'key_personal') ?? apiKey),
  organizationApiKey: accessor<'organizationApiKey'>(
    ({ world, organizationApiKey }) => secretOf(world, 'key_organization') ?? organizationApiKey,
  ),
  behaviour: accessor<'behaviour'>(({ world }) => world.behaviour),
  ledger: accessor<'ledger'>(({ world }) => world.tables.ledger),
}

/** A copy of the sandbox has only what a client takes: `new CustomerOrderingClient({ ...sandbox })`. */
const COPIED: readonly string[] = ['baseUrl', 'apiKey', 'fetch']

export function defineAccessors<Sandbox extends Changing>(sandbox: Sandbox, source: Source): Sandbox {
  Object.defineProperty(sandbox, SOURCE, ownOnly({ value: source }))
  Object.defineProperties(sandbox, accessors)
  for (const name of Object.keys(sandbox))
    Object.defineProperty(sandbox, name, ownOnly({ enumerable: COPIED.includes(name) }))
  return sandbox
}

function accessor<K extends keyof Changing>(
  show: (source: Source) => Changing[K],
): TypedPropertyDescriptor<Changing[K]> {
  return ownOnly({
    enumerable: true,
    get(this: { readonly [SOURCE]: Source }) {
      return show(this[SOURCE])
    },
  })
}

/** Makes a property descriptor that inherits nothing from a polluted `Object.prototype`. */
function ownOnly<T extends PropertyDescriptor>(descriptor: T): T {
  Object.setPrototypeOf(descriptor, null)
  return descriptor
}

function secretOf({ tables }: World, id: string): string | undefined {
  return [...tables.apiKeys.values()].find((row) => row.id === id)?.secret
}
