import type {
  FaultAction,
  FaultListChange,
  FaultMatch,
  FaultRule,
  SandboxFaults,
  SandboxRequestView,
} from './faults.ts'
import { isJsonObject, type JsonObject, mergePatch } from './json.ts'
import type { Random } from './random.ts'
import type { ListChanges } from './reading.ts'

const COMBINABLE = ['delay', 'forgetKeys', 'transformBody', 'shortPage', 'mutateList'] as const

/** Only one can apply to a request: each determines the response or how it is delivered. */
export type FaultEnding = Exclude<FaultAction, { readonly type: (typeof COMBINABLE)[number] }>

export interface FaultPlan {
  readonly forgetKeys: boolean
  /** Milliseconds. */
  readonly delay: { readonly before: number; readonly during: number; readonly after: number }
  readonly list: ListChanges
  readonly transforms: readonly ((body: unknown) => unknown)[]
  readonly ending: FaultEnding | null
  readonly actions: readonly FaultAction['type'][]
}

export interface FaultScript extends SandboxFaults {
  plan(request: SandboxRequestView): FaultPlan
}

interface ActiveRule {
  readonly id: number
  readonly rule: FaultRule
  readonly times: number
  seen: number
  acted: number
}

export function createFaultScript(random: Random, check: (rule: FaultRule) => void): FaultScript {
  let rules: ActiveRule[] = []
  let lastId = 0

  /** Counts the request even if the rule does not apply. */
  const applies = (active: ActiveRule): boolean => {
    active.seen++
    if (active.seen <= (active.rule.skip ?? 0) || active.acted >= active.times) return false
    const { probability } = active.rule
    if (probability !== undefined && random.next() >= probability) return false
    active.acted++
    return true
  }

  return {
    add(rule) {
      check(rule)
      const times = rule.times === 'always' ? Infinity : (rule.times ?? 1)
      const id = ++lastId
      rules.push({ id, rule, times, seen: 0, acted: 0 })
      return () => {
        rules = rules.filter((other) => other.id !== id)
      }
    },
    clear() {
      rules = []
    },
    pending() {
      return rules
        .filter(({ times, acted }) => acted < (times === Infinity ? 1 : times))
        .map(({ rule }) => rule)
    },
    list() {
      return rules.map(({ id, rule, times, seen, acted }) => ({
        id,
        rule,
        matched: seen,
        acted,
        spent: acted >= times,
      }))
    },
    remove(id) {
      const before = rules.length
      rules = rules.filter((other) => other.id !== id)
      return rules.length < before
    },
    plan(request) {
      let forgetKeys = false
      const delay = { before: 0, during: 0, after: 0 }
      const list: { -readonly [Field in keyof ListChanges]: ListChanges[Field] } = {
        fewer: 0,
        change: null,
      }
      const transforms: FaultPlan['transforms'][number][] = []
      let ending: FaultEnding | null = null
      const actions: FaultAction['type'][] = []
      for (const active of rules) {
        const { action, match } = active.rule
        // Do not count the request for a rule that cannot apply, so that the rule remains available
        // for a later request.
        if (ending !== null && isEnding(action)) continue
        if (!matches(match ?? {}, request) || !applies(active)) continue
        actions.push(action.type)
        switch (action.type) {
          case 'forgetKeys':
            forgetKeys = true
            break
          case 'delay':
            delay[action.when ?? 'before'] += action.ms
            break
          case 'transformBody':
            transforms.push((body) => transformed(body, action, request))
            break
          case 'shortPage':
            list.fewer += action.fewer ?? 1
            break
          case 'mutateList': {
            const earlier = list.change
            list.change = (rows) => changed(earlier?.(rows) ?? rows, action.change, request, random)
            break
          }
          default:
            ending = action
        }
      }
      return { forgetKeys, delay, list, transforms, ending, actions }
    },
  }
}

function isEnding(action: FaultAction): action is FaultEnding {
  return !COMBINABLE.some((type) => type === action.type)
}

function matches(match: FaultMatch, request: SandboxRequestView): boolean {
  const { operation, method, path, externalOrderId, idempotencyKey, when } = match
  return (
    (operation === undefined || operation === request.operation) &&
    (method === undefined || method === request.method) &&
    (externalOrderId === undefined || externalOrderId === request.externalOrderId) &&
    (idempotencyKey === undefined || idempotencyKey === request.idempotencyKey) &&
    // With a global pattern, `test()` would read and change the pattern's `lastIndex`.
    (path === undefined ||
      (typeof path === 'string' ? request.path.startsWith(path) : request.path.search(path) >= 0)) &&
    (when === undefined || when(request))
  )
}

function transformed(
  body: unknown,
  action: Extract<FaultAction, { type: 'transformBody' }>,
  request: SandboxRequestView,
): unknown {
  const patched = isJsonObject(body) ? mergePatch(body, action.patch ?? {}) : body
  return action.transform === undefined ? patched : action.transform(patched, request)
}

function changed(
  rows: readonly JsonObject[],
  change: FaultListChange,
  request: SandboxRequestView,
  random: Random,
): readonly JsonObject[] {
  switch (change) {
    case 'dropFirst':
      return rows.slice(1)
    case 'duplicateFirst':
      return [...rows.slice(0, 1), ...rows]
    case 'reverse':
      return rows.toReversed()
    case 'shuffle':
      return rows
        .map((row) => ({ row, place: random.next() }))
        .sort((a, b) => a.place - b.place)
        .map(({ row }) => row)
    default:
      return change(rows, request)
  }
}
