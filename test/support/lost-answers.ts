import type { Sandbox } from '../../src/sandbox/index.ts'

/** Charges orders whose reference begins with `lost-`, and loses the first response to each. */
export function loseFirstAnswers(sandbox: Sandbox): void {
  const lost = new Set<string>()
  sandbox.faults.add({
    match: {
      when: ({ externalOrderId }) => {
        if (externalOrderId?.startsWith('lost-') !== true || lost.has(externalOrderId)) return false
        lost.add(externalOrderId)
        return true
      },
    },
    action: { type: 'commitThenDrop' },
    times: 'always',
  })
}
