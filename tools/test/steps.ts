/**
 * The steps of `npm test` and `npm run test:all`. test/support/effort.ts sets how much the
 * harnesses try.
 */

/**
 * A command, or the arguments of Vitest. The steps of a lane run one after the other, and lanes run
 * in parallel.
 */
export type Step = {
  readonly name: string
  readonly lane: string
  /** Steps that must pass first. */
  readonly needs?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
} & (
  | { readonly command: readonly string[]; readonly vitest?: never }
  | { readonly command?: never; readonly vitest: readonly string[] }
)

/** The test files that `npm test` omits, and the programs of which it runs only a part. */
export const LEFT_OUT: readonly {
  readonly what: string
  readonly files?: readonly string[]
  readonly command: string
}[] = [
  {
    what: 'Chromium, Firefox and WebKit',
    files: ['test/browser/**'],
    command: 'npx vitest run --project browser',
  },
  {
    what: 'PostgreSQL, MariaDB, Redis and workerd, and their clients',
    files: ['test/stores/{postgres,redis,mysql,workers}/**', 'test/stores/command.test.ts'],
    command: 'npx vitest run --project stores',
  },
  {
    what: 'the build, and the packed file in processes',
    command: 'npm exec -c "npm run build && vitest run --project package"',
  },
  {
    what: 'the packed file in runtimes, bundlers, compilers and test runners',
    command: 'npx vitest run --project runtimes',
  },
  {
    what: 'blocks of code in the docs, with the build',
    files: ['test/docs/blocks.test.ts'],
    command: 'npm exec -c "npm run build && vitest run --project docs blocks"',
  },
  {
    what: 'faults of the network on every version of Node',
    files: ['test/harness/network/**'],
    command: 'npx vitest run --project network',
  },
  {
    what: 'the server tests again, with undici',
    command: 'npx vitest run --project server-undici',
  },
  {
    what: 'killed processes, and fleets over each store',
    files: [
      'test/harness/crash/sigkill.test.ts',
      'test/harness/fleet/{sqlite,postgres,redis,mysql,d1,object}.test.ts',
    ],
    command: 'npx vitest run --project crash --project fleet sigkill fleet',
  },
  {
    what: 'seeded bugs against the tests and the simulation',
    files: ['test/harness/{crash,simulation}/seeded-bugs.test.ts', 'test/harness/simulation/shrink.test.ts'],
    command: 'npx vitest run seeded-bugs shrink',
  },
  {
    what: 'the code of the pages on frameworks and the proxy, in each framework',
    files: ['test/docs/frameworks.test.ts', 'test/docs/proxy.test.ts'],
    command:
      'npm exec -c "node tools/programs/install.ts tools/packages && vitest run --project docs frameworks proxy"',
  },
  {
    what: 'test/types with Vitest, in addition to the compiler in `types`',
    command: 'npx vitest run --project types',
  },
  {
    what: 'most echoes of the API key, arguments of programs, signals and pipes of the command',
    command: 'npm run test:all',
  },
  {
    what: 'most histories over a socket, generated input; the contract under node:test',
    command: 'npm run test:all',
  },
  { what: 'all but 500 seeds of the simulation', command: 'npm run verify simulation' },
  { what: 'crashes in pairs, and mishaps among concurrent calls', command: 'npm run verify model' },
  { what: 'all but one seed of broken responses', command: 'npm run verify fuzz' },
  { what: 'a client that lives long, and reconcile() of 100,000 records', command: 'npm run verify soak' },
  { what: 'examples', command: 'npm run example all' },
  { what: 'the OpenAPI file and Prism', command: 'npm run check:openapi' },
  { what: 'the site of the docs', command: 'npm run check:docs' },
]

/** The projects of `npm test`: those that read the source, not the build. */
const ofSource = [
  'unit',
  'client',
  'proxy',
  'opentelemetry',
  'command',
  'stores',
  'sandbox',
  'server',
  'property',
  'fuzz',
  'model',
  'soak',
  'fleet',
  'crash',
  'simulation',
  'docs',
  'architecture',
]

const projects = (names: readonly string[]): readonly string[] => names.flatMap((name) => ['--project', name])
const excluded = LEFT_OUT.flatMap(({ files = [] }) => files).flatMap((files) => ['--exclude', files])
const script = (name: string): readonly string[] => ['npm', 'run', '-s', name]

/**
 * Checks that run no tests. CI starts with `npm test`, so it passes `--after-test` to `npm run
 * test:all` and does not repeat them.
 */
export const CHECKS: readonly Step[] = [
  { name: 'lint', lane: 'checks', command: script('lint') },
  { name: 'types', lane: 'checks', command: script('typecheck') },
  { name: 'tables of the docs', lane: 'checks', command: ['node', 'tools/docs/tables.ts', '--check'] },
]

export const IN_TEST: readonly Step[] = [
  ...CHECKS,
  { name: 'tests', lane: 'tests', vitest: [...projects(ofSource), ...excluded] },
]

export const IN_ALL: readonly Step[] = [
  ...CHECKS,
  { name: 'build', lane: 'tests', command: ['node', 'tools/build/ensure-built.ts'] },
  { name: 'tests', lane: 'tests', needs: ['build'], vitest: [] },
  { name: 'package', lane: 'checks', needs: ['build'], command: script('check:package') },
  { name: 'size', lane: 'checks', needs: ['build'], command: script('size') },
  { name: 'allocations', lane: 'checks', needs: ['build'], command: script('allocations') },
  { name: 'unused', lane: 'checks', command: script('unused') },
  {
    name: 'examples',
    lane: 'checks',
    needs: ['build'],
    command: [...script('example'), 'all'],
  },
  {
    name: 'OpenAPI file and Prism',
    lane: 'checks',
    needs: ['build'],
    command: script('check:openapi'),
    env: { COMMAND: 'dist/command.js' },
  },
  {
    name: 'site of the docs',
    lane: 'checks',
    command: script('check:docs'),
  },
]
