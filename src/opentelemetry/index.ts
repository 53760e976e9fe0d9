export { type ObserveOptions, observeOpenOrders, type UnresolvedOrders } from './open-orders.ts'
export { type TelemetryOptions, telemetryHooks, traceHeaders } from './telemetry.ts'
