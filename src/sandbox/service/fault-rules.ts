import { type FaultAction, type FaultRule, operations } from './faults.ts'
import { isJsonObject, parseJson } from './json.ts'
import {
  anything,
  assertShape,
  code,
  dictionaryOf,
  either,
  flag,
  isFunction,
  listOf,
  number,
  oneOf,
  record,
  type Shape,
  text,
} from './shape.ts'

const count = number({ min: 0 })
const status = number({ min: 200, max: 599 })
const headerValue = text(/^[\t\x20-\x7e\x80-\xff]*$/, 'a valid header value')
const plain = record({})

/** Requires `transform` or `patch`, or both, which `record` cannot express. */
const transformBody: Shape = (value, path) =>
  record({ type: text() }, { transform: isFunction, patch: dictionaryOf(anything) })(value, path) ??
  (isJsonObject(value) && value['transform'] === undefined && value['patch'] === undefined
    ? `${path}: needs "patch" (or, in code, "transform")`
    : null)

const type = text()
const actions: { readonly [Type in FaultAction['type']]: Shape } = {
  refuseConnection: record({ type }),
  drop: record({ type }),
  commitThenDrop: record({ type }),
  crash: record({ type }),
  cutBody: record({ type }, { after: count, cleanly: flag }),
  stallBody: record({ type }, { after: count }),
  stall: record({ type }, { commit: flag }),
  delay: record(
    { type, ms: number({ min: 0, fraction: true }) },
    { when: oneOf('before', 'during', 'after') },
  ),
  status: record(
    { type, status },
    {
      headers: dictionaryOf(headerValue),
      json: anything,
      text: text(),
      html: flag,
      code: text(),
      commit: flag,
    },
  ),
  inProgress: record({ type }, { commit: flag }),
  forgetKeys: record({ type }),
  transformBody,
  shortPage: record({ type }, { fewer: number({ min: 1 }) }),
  mutateList: record({
    type,
    change: either(
      '"dropFirst" or "duplicateFirst" or "reverse" or "shuffle" (or, in code, a function)',
      oneOf('dropFirst', 'duplicateFirst', 'reverse', 'shuffle'),
      isFunction,
    ),
  }),
  bytes: record({ type, body: text() }, { contentType: headerValue, status, commit: flag }),
  otherOrder: record({ type }, { commit: flag }),
}

const action: Shape = (value, path) => {
  const name = isJsonObject(value) ? value['type'] : undefined
  const shape = Object.entries(actions).find(([known]) => known === name)?.[1]
  if (shape !== undefined) return shape(value, path)
  return isJsonObject(value) ? oneOf(...Object.keys(actions))(name, `${path}.type`) : plain(value, path)
}

const rule: Shape = record(
  { action },
  {
    match: record(
      {},
      {
        operation: oneOf(...operations),
        method: text(/^[A-Z]+$/, 'an HTTP method in upper case'),
        path: either(
          'the beginning of a path, such as "/v1/orders" (or, in code, a RegExp)',
          text(/^\//),
          code('a RegExp', (value) => value instanceof RegExp),
        ),
        externalOrderId: text(),
        idempotencyKey: text(),
        when: isFunction,
      },
    ),
    skip: count,
    times: either(
      'an integer from 1, or "always"',
      number({ min: 1 }),
      oneOf('always', Number.POSITIVE_INFINITY),
    ),
    probability: number({ min: 0, max: 1, fraction: true }),
  },
)

export function checkFaultRule(value: FaultRule): void {
  assertShape<FaultRule>(value, rule, 'rule')
}

/**
 * Parses the text of a file with fault rules: a JSON array of rules.
 *
 * Such rules cannot contain functions or RegExps.
 *
 * @throws {TypeError} if the text or a rule is invalid, with the place and the reason
 * @example
 * const faults = parseFaultRules(await readFile('faults.json', 'utf8'))
 */
export function parseFaultRules(text: string): readonly FaultRule[] {
  return readFaultRules(parseJson(text))
}

export function readFaultRules(rules: unknown): readonly FaultRule[] {
  assertShape<readonly FaultRule[]>(rules, listOf(rule), '$')
  return rules
}
