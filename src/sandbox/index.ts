/** The Customer Ordering API in memory, for tests: `customer-ordering-sdk/sandbox`. */
export {
  type SandboxBehaviour,
  type SandboxCheck,
  type SandboxOrderField,
  type SandboxPreset,
  sandboxPresets,
} from './behaviour.ts'
export type { DataFormat } from './data-file.ts'
export { parseFaultRules } from './fault-rules.ts'
export type {
  FaultAction,
  FaultListChange,
  FaultMatch,
  FaultRule,
  SandboxFaultStatus,
  SandboxFaults,
  SandboxOperation,
  SandboxRequestView,
} from './faults.ts'
export type { SandboxFetch } from './fetch.ts'
export type { JsonObject, JsonPatchStep } from './json.ts'
export { type SandboxAssertion, SandboxAssertionError, type SandboxAssertions } from './ledger.ts'
export type { NewApiKey, NewCustomer, NewOrder, NewService, SandboxOptions } from './options.ts'
export type { SandboxDelivery, SandboxMessage, SandboxReply, SandboxRequest } from './reply.ts'
export { createSandbox, type Sandbox } from './sandbox.ts'
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
} from './state.ts'
export type { SandboxSleep } from './world.ts'
