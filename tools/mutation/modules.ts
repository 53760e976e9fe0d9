/** What is mutated, and by which tests it is judged. */
export interface Module {
  readonly name: string
  /** Below `src`. */
  readonly files: readonly string[]
  /** Below `test`, globs; those that are likely to notice first, because the first failure ends a mutant's run. */
  readonly tests: readonly string[]
}

const ORDERS = [
  'client/create/{clean-refusals,messages}.test.ts',
  'client/recover/create-meanwhile.test.ts',
  'client/**/{idempotency,sequences,conflicts,anonymous,generations,retry,timeouts,abort,mistakes-of-callers}.test.ts',
  'client/**/{recover,resolve,enqueue,reconcile,remembered,pruning,create-many,close,codec,hooks}.test.ts',
  'client/**/api-key-rotation.test.ts',
]

export const MODULES: readonly Module[] = [
  {
    name: 'canonical JSON',
    files: ['orders/canonical.ts'],
    tests: ['unit/**/canonical.test.ts', 'property/canonical.test.ts'],
  },
  { name: 'identity', files: ['orders/identity.ts'], tests: ['unit/**/identity.test.ts'] },
  {
    name: 'outcome table',
    files: ['orders/outcome.ts'],
    tests: ['unit/**/outcome.test.ts', 'unit/**/classify.test.ts'],
  },
  {
    name: 'rules',
    files: ['orders/conditions.ts', 'orders/rules.ts'],
    tests: ['unit/**/rules.test.ts'],
  },
  {
    name: 'record',
    files: ['orders/record.ts', 'orders/row.ts'],
    tests: [
      'unit/**/record.test.ts',
      'client/recover/create-meanwhile.test.ts',
      'unit/**/rules.test.ts',
      'client/**/{codec,remembered,enqueue}.test.ts',
    ],
  },
  {
    name: 'redaction',
    files: ['http/redact.ts'],
    tests: ['unit/**/redact.test.ts'],
  },
  {
    name: 'retry',
    files: ['http/retry.ts', 'http/deadline.ts', 'http/call.ts'],
    tests: ['unit/**/{retry,deadline,call}.test.ts'],
  },
  {
    name: 'failures',
    files: ['http/failures.ts'],
    tests: ['unit/**/failures.test.ts', 'client/**/{reads,retry}.test.ts'],
  },
  {
    name: 'intent',
    files: ['orders/intent.ts'],
    tests: ['unit/**/{intent,field-names}.test.ts'],
  },
  {
    name: 'pages',
    files: ['lists/pages.ts', 'lists/walk.ts'],
    tests: [
      'unit/**/lists/pages.test.ts',
      'unit/**/lists/prefetch.test.ts',
      'client/**/paging.test.ts',
      'property/prefetch.test.ts',
    ],
  },
  {
    name: 'prefetch',
    files: ['lists/prefetch.ts'],
    tests: [
      'unit/**/lists/prefetch.test.ts',
      'unit/**/lists/pages.test.ts',
      'client/**/paging.test.ts',
      'property/prefetch.test.ts',
    ],
  },
  {
    name: 'list pages',
    files: ['lists/list-pages.ts', 'lists/envelope.ts'],
    tests: ['client/**/{paging,reads,close}.test.ts'],
  },
  {
    name: 'transitions',
    files: ['orders/transitions.ts', 'orders/claim.ts', 'orders/context.ts'],
    tests: ['unit/**/orders/{transitions,keys,context,claim}.test.ts'],
  },
  {
    name: 'journal',
    files: ['orders/journal.ts', 'orders/rows.ts', 'orders/live.ts'],
    tests: ['unit/**/{journal,live}.test.ts', 'client/**/{pruning,close}.test.ts'],
  },
  {
    name: 'placing',
    files: ['orders/create.ts', 'orders/claim.ts', 'orders/unclaimed.ts'],
    tests: [
      'unit/**/orders/create.test.ts',
      'client/**/{idempotency,anonymous,sequences,hooks,generations,conflicts,retry,abort,enqueue}.test.ts',
      'client/**/{store-faults,codec,api-key-rotation}.test.ts',
    ],
  },
  {
    name: 'sending',
    files: ['orders/send-order.ts'],
    tests: ['unit/**/send-order.test.ts', ...ORDERS],
  },
  {
    name: 'looking up',
    files: ['orders/look-up.ts', 'orders/evidence.ts'],
    tests: ['unit/**/{scan-orders,look-up}.test.ts', 'client/**/{recover,resolve,contradictions}.test.ts'],
  },
  {
    name: 'newest version',
    files: ['orders/newest.ts', 'orders/recovery-outcome.ts'],
    tests: ['unit/**/{newest,recovery-outcome}.test.ts', 'client/**/{anonymous,recover,resolve}.test.ts'],
  },
  {
    name: 'recovery',
    files: ['orders/recover.ts'],
    tests: [
      'unit/**/recover.test.ts',
      'client/**/{recover,enqueue,codec}.test.ts',
      'client/recover/create-meanwhile.test.ts',
    ],
  },
]
