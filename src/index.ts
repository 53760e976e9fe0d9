export { aesGcm } from './aes-gcm.ts'
export type {
  AbandonedOrder,
  ConfirmedOrder,
  CreateManyOptions,
  CreateManyProgress,
  CreateManyRow,
  CreateOptions,
  EchoedField,
  ListOptions,
  ListOrdersParams,
  ListParams,
  OrderName,
  ReconcileParams,
  RecoverOptions,
  RememberedQuery,
  RequestOptions,
  Resolution,
  WaitForOptions,
} from './call-options.ts'
export { CustomerOrderingClient } from './client.ts'
export {
  type AnyCustomerOrderingError,
  ApiError,
  type ApiErrorCode,
  AuthenticationError,
  BadRequestError,
  type Charged,
  ConfigurationError,
  type ConflictCode,
  ConflictError,
  ConnectionError,
  CustomerOrderingError,
  DuplicateOrderError,
  type ErrorFacts,
  IdempotencyConflictError,
  IdempotencyInProgressError,
  InvalidRequestError,
  InvalidResponseError,
  type Issue,
  isCustomerOrderingError,
  type MissingResource,
  NotFoundError,
  OrderNotAcceptedError,
  PaymentRequiredError,
  type Permission,
  PermissionDeniedError,
  RateLimitError,
  RequestAbortedError,
  ServerError,
  StoreError,
  type StoreErrorFacts,
  type SupportReference,
  TimeoutError,
  UnresolvedOrderError,
} from './errors/classes.ts'
export type {
  CallEvent,
  Hooks,
  Logger,
  LogLevel,
  RequestEvent,
  ResponseEvent,
  RetryEvent,
  SettledEvent,
} from './hooks.ts'
export type {
  BodyText,
  ResponseHeaders,
  Transport,
  TransportRequest,
  TransportResponse,
  Unsent,
} from './http/transport.ts'
export type { Lazy } from './lazy.ts'
export type { Page, Pages } from './lists/pages.ts'
export { formatAmount, type Money } from './money.ts'
export type {
  ApiKey,
  BalanceOf,
  ClientOptions,
  Codec,
  OrderOf,
  Retention,
  Schemas,
  ServiceOf,
} from './options.ts'
export type {
  CreateManyFailure,
  CreateManyResult,
  CreateManySuccess,
  CreateManySummary,
} from './orders/commands/create-many.ts'
export type { Reconciled } from './orders/commands/reconcile.ts'
export type {
  AttentionReason,
  RecordInNeed,
  RecoveredOrder,
  RecoveryOutcome,
  RecoverySummary,
} from './orders/commands/recovery-outcome.ts'
export type { Hold, OrderRecord, RecordState, Rejection, RejectionKind } from './orders/record/record.ts'
export { checkQuantity, type QuantityCheck, type QuantityProblem, type QuantityRules } from './quantity.ts'
export type { Wallet } from './resources/balance.ts'
export type { Orders } from './resources/orders.ts'
export type { RawRequest, RawResult, RequestMethod } from './resources/request.ts'
export type { Services } from './resources/services.ts'
export { type ResponseInfo, responseInfo } from './response-info.ts'
export type { Runtime } from './runtime.ts'
export type { Balance } from './schemas/balance.ts'
export type { ListEnvelope, OrderListResponse, ServiceListResponse } from './schemas/list.ts'
export type { CreateOrderRequest, Order, OrderMetadata } from './schemas/order.ts'
export type { ErrorResponse } from './schemas/problem.ts'
export type { Service } from './schemas/service.ts'
export type { StandardSchemaV1 } from './schemas/standard-schema.ts'
export { MemoryStore } from './stores/memory.ts'
export type {
  InsertResult,
  ListRowsOptions,
  OrderStore,
  PruneOptions,
  RowPage,
  StoreDurability,
  StoredRow,
} from './stores/store.ts'
export { suggestedStatus } from './suggested-status.ts'
