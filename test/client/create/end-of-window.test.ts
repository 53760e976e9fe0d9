import { isCustomerOrderingError } from 'customer-ordering-sdk'
import { expect, it } from 'vitest'
import { Lab, order } from '../../support/lab.ts'

const SECOND = 1000
const WINDOW = 20 * 60 * SECOND

/** Seconds before the service forgets the key at which a second machine calls. */
const TIMES = [90, 60, 59, 31, 30, 29, 15, 1, 0]

it.each([
  ['29 seconds behind, whose request arrives immediately', 29, 0],
  ['29 seconds ahead, whose request arrives immediately', -29, 0],
  ['that is right, whose request takes as long as its timeout', 0, 29.9],
  ['29 seconds behind, whose request takes as long as its timeout', 29, 29.9],
])(
  'a service that forgets a key after the window charges once, though a second call has a clock %s',
  async (_what, behind, takes) => {
    for (const left of TIMES) {
      const lab = new Lab({ behaviour: { keyLifetime: WINDOW } })
      await lab.doubted()
      lab.runtime.jump(WINDOW - left * SECOND)
      if (takes > 0) lab.fault({ type: 'delay', ms: takes * SECOND, when: 'before' })
      const call = lab.ahead(-behind * SECOND, { maxRetries: 0 }).orders.create(order('r1'))
      // Whether the call may still send does not matter, only what the service charges.
      await call.catch((error: unknown) => expect(isCustomerOrderingError(error)).toBe(true))
      expect(lab.sandbox.ledger, `${left} s before`).toHaveLength(1)
    }
  },
)
