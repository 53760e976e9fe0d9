/** The Customer Ordering API in memory, for tests: `customer-ordering-sdk/sandbox`. */

export type { SandboxFetch } from './http/fetch.ts'
export { createSandbox, type Sandbox } from './sandbox.ts'
export {
  type SandboxBehaviour,
  type SandboxCheck,
  type SandboxOrderField,
  type SandboxPreset,
  sandboxPresets,
} from './service/behaviour.ts'
export { parseFaultRules } from './service/fault-rules.ts'
export type {
  FaultAction,
  FaultListChange,
  FaultMatch,
  FaultRule,
  SandboxFaultStatus,
  SandboxFaults,
  SandboxOperation,
  SandboxRequestView,
} from './service/faults.ts'
export type { JsonObject } from './service/json.ts'
export { type SandboxAssertion, SandboxAssertionError, type SandboxAssertions } from './service/ledger.ts'
export type { NewApiKey, NewCustomer, NewOrder, NewService, SandboxOptions } from './service/options.ts'
export type {
  SandboxDelivery,
  SandboxMessage,
  SandboxReply,
  SandboxRequest,
  SandboxResponse,
} from './service/reply.ts'
export type {
  SandboxApiKey,
  SandboxCharge,
  SandboxCustomer,
  SandboxKeyAnswer,
  SandboxKeyEntry,
  SandboxOrder,
  SandboxPermission,
  SandboxService,
  SandboxState,
  SandboxWallet,
} from './service/state.ts'
export type { SandboxSleep } from './service/world.ts'
export { createTestClock, type TestClock } from './test-clock.ts'
