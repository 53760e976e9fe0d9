import { createSandbox, type FaultAction, parseFaultRules } from 'customer-ordering-sdk/sandbox'
import { describe, expect, test } from 'vitest'

/** One action of every type, with all its fields. The compiler keeps the list complete. */
const everyAction: { readonly [Type in FaultAction['type']]: Extract<FaultAction, { type: Type }> } = {
  refuseConnection: { type: 'refuseConnection' },
  drop: { type: 'drop' },
  commitThenDrop: { type: 'commitThenDrop' },
  crash: { type: 'crash' },
  cutBody: { type: 'cutBody', after: 3, cleanly: true },
  stallBody: { type: 'stallBody', after: 0 },
  stall: { type: 'stall', commit: true },
  delay: { type: 'delay', ms: 1.5, when: 'during' },
  status: {
    type: 'status',
    status: 599,
    headers: { a: 'b' },
    json: null,
    text: '',
    html: true,
    code: 'X',
    commit: false,
  },
  inProgress: { type: 'inProgress', commit: false },
  forgetKeys: { type: 'forgetKeys' },
  transformBody: { type: 'transformBody', patch: { a: null } },
  shortPage: { type: 'shortPage', fewer: 1 },
  mutateList: { type: 'mutateList', change: 'shuffle' },
  bytes: { type: 'bytes', body: '', contentType: 'text/plain', status: 200, commit: false },
  otherOrder: { type: 'otherOrder', commit: false },
}

describe('fault rules from a file', () => {
  test.each(Object.keys(everyAction))('a fault file may contain the action %s', (type) => {
    const names = { externalOrderId: 'a', idempotencyKey: 'b' }
    const rules = [
      {
        match: { operation: 'createOrder', method: 'POST', path: '/v1', ...names },
        skip: 1,
        times: 'always',
        probability: 0.5,
        action: everyAction[type as FaultAction['type']],
      },
    ]
    expect(parseFaultRules(JSON.stringify(rules))).toEqual(rules)
    expect(createSandbox({ faults: parseFaultRules(JSON.stringify(rules)) }).faults.pending()).toHaveLength(1)
  })

  const DROP = { type: 'drop' }
  const STATUS = { type: 'status', status: 200 }
  const MUTATE = { type: 'mutateList' }
  test.each<[rules: unknown, message: string]>([
    [{}, '$: expected an array, got {}'],
    [[1], '$[0]: expected an object, got 1'],
    [[{}], '$[0]: the field "action" is missing'],
    [[{ action: 'drop' }], '$[0].action: expected an object, got "drop"'],
    [[{ action: {} }], '$[0].action.type: expected "refuseConnection" or'],
    [[{ action: { type: 'toString' } }], '$[0].action.type: expected "refuseConnection" or'],
    [[{ action: DROP }, { action: { type: 'dorp' } }], '$[1].action.type: expected'],
    [[{ action: { ...DROP, commit: true } }], '$[0].action: unknown field "commit"; known: type'],
    [[{ action: DROP, time: 1 }], '$[0]: unknown field "time"; known: action, match, skip'],
    [[{ action: DROP, times: 0 }], '$[0].times: expected an integer from 1, or "always"'],
    [[{ action: DROP, skip: -1 }], '$[0].skip: expected an integer from 0, got -1'],
    [[{ action: DROP, probability: 2 }], '$[0].probability: expected a number from 0 up to 1'],
    [[{ action: DROP, match: { path: 'v1' } }], '$[0].match.path: expected the beginning of a path'],
    [[{ action: DROP, match: { operation: 'x' } }], '$[0].match.operation: expected "createOrder"'],
    [[{ action: DROP, match: { method: 'post' } }], '$[0].match.method: expected an HTTP method in upper'],
    [[{ action: { ...STATUS, status: 99 } }], '$[0].action.status: expected an integer from 200 up to 599'],
    [[{ action: { type: 'status' } }], '$[0].action: the field "status" is missing'],
    [
      [{ action: { ...STATUS, headers: { a: 'b\nc' } } }],
      '$[0].action.headers.a: expected a valid header value',
    ],
    [[{ action: { type: 'transformBody' } }], '$[0].action: needs "patch"'],
    [[{ action: { type: 'transformBody', patch: [] } }], '$[0].action.patch: expected an object'],
    [[{ action: { ...MUTATE, change: 'sort' } }], '$[0].action.change: expected "dropFirst" or'],
    [[{ action: { ...MUTATE, change: [] } }], '$[0].action.change: expected "dropFirst" or'],
  ])('the fault rules %j are rejected with the place and the reason', (rules, message) => {
    expect(() => parseFaultRules(JSON.stringify(rules))).toThrow(message)
  })
})

test('a malformed rule from code is rejected, and nothing is added', () => {
  const { faults } = createSandbox()
  expect(() => faults.add(JSON.parse('{"action":{"type":"delay"}}'))).toThrow(
    'rule.action: the field "ms" is missing',
  )
  expect(faults.pending()).toEqual([])
})
