import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { seamsForVite } from './test/harness/crash/seams.ts'

const source = (path: string): string => fileURLToPath(new URL(`./src/${path}`, import.meta.url))

/** Tests import the package by its public names; these point them at the source. */
const alias = [
  { find: /^customer-ordering-sdk$/, replacement: source('index.ts') },
  { find: /^customer-ordering-sdk\/stores\/(.+)$/, replacement: source('stores/$1.ts') },
  { find: /^customer-ordering-sdk\/sandbox$/, replacement: source('sandbox/index.ts') },
  { find: /^customer-ordering-sdk\/sandbox\/server$/, replacement: source('sandbox/http/server.ts') },
  { find: /^customer-ordering-sdk\/undici$/, replacement: source('undici/index.ts') },
  { find: /^customer-ordering-sdk\/proxy$/, replacement: source('proxy/index.ts') },
  { find: /^customer-ordering-sdk\/proxy\/node$/, replacement: source('proxy/node.ts') },
  { find: /^customer-ordering-sdk\/opentelemetry$/, replacement: source('opentelemetry/index.ts') },
  { find: /^customer-ordering-sdk\/msw$/, replacement: source('sandbox/http/msw.ts') },
]

/** With a name in SEEDED_BUG, all tests run with that bug in the source. A bug stays in the modules of its worker. */
const bug = process.env['SEEDED_BUG']
const sown = (provide: unknown) =>
  bug === undefined
    ? {}
    : {
        setupFiles: ['test/harness/crash/sow.ts'],
        provide: { ...(provide as object), bug },
        isolate: true,
      }

export const project = (name: string, extra: Record<string, unknown> = {}) => ({
  resolve: { alias },
  plugins: bug === undefined ? [] : [seamsForVite()],
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    environment: 'node',
    // A machine that is busy writes slowly: the stores of a test's hook wait for the disk.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    ...extra,
    ...sown(extra['provide']),
  },
})

/** A project whose tests are those of a harness. */
const harness = (name: string, extra: Record<string, unknown> = {}) =>
  project(name, { include: [`test/harness/${name}/**/*.test.ts`], ...extra })

/** Files that leave nothing behind share a thread, which loads each module once: half the time. */
const together = { isolate: false, pool: 'threads' }

/** Files that leave something behind only in a full run: drivers of servers, frameworks. */
const togetherInShort = process.env['TEST_EFFORT'] === 'full' ? {} : together

export default defineConfig({
  test: {
    maxWorkers: '100%',
    // Not with a seeded bug, which changes the modules.
    fsModuleCache: bug === undefined,
    fsModuleCachePath: '.tmp/vitest',
    projects: [
      project('unit', together),
      project('client', together),
      project('proxy', together),
      project('opentelemetry', { isolate: true }),
      project('command', together),
      project('stores', { ...togetherInShort, testTimeout: 240_000, hookTimeout: 240_000 }),
      project('browser', { testTimeout: 240_000, hookTimeout: 120_000 }),
      project('sandbox', together),
      project('server', { ...together, testTimeout: 20_000, setupFiles: ['test/server/load-fetch.ts'] }),
      // The same once more over the other transport, without what is about one transport alone.
      project('server-undici', {
        include: ['test/server/**/*.test.ts'],
        exclude: ['test/server/{platform-fetch,undici}.test.ts'],
        testTimeout: 20_000,
        setupFiles: ['test/server/load-fetch.ts'],
        provide: { transport: 'undici' },
        ...together,
      }),
      harness('network', {
        testTimeout: 20_000,
        hookTimeout: 300_000,
        globalSetup: ['test/harness/network/setup.ts'],
      }),
      project('property', together),
      harness('fuzz', { testTimeout: 300_000 }),
      harness('model', { testTimeout: 300_000 }),
      harness('soak', { testTimeout: 300_000 }),
      harness('fleet', { testTimeout: 300_000 }),
      harness('crash', { testTimeout: 300_000, maxConcurrency: 2 }),
      harness('simulation', { testTimeout: 900_000 }),
      project('package', {
        // bench.test.ts needs a process in which nothing has loaded fetch.
        include: ['test/package/{bench,files,processes,quickstart}.test.ts'],
        testTimeout: 120_000,
        globalSetup: ['test/package/setup.ts'],
      }),
      project('runtimes', {
        include: ['test/package/{peers,runners,runtimes,smoke,tree-shaking,types}.test.ts'],
        testTimeout: 120_000,
        globalSetup: ['test/package/setup-runtimes.ts'],
      }),
      project('docs', { ...togetherInShort, testTimeout: 120_000 }),
      {
        resolve: { alias },
        test: {
          name: 'types',
          include: [],
          typecheck: {
            enabled: true,
            only: true,
            checker: './node_modules/typescript-native/bin/tsc',
            tsconfig: './tsconfig.test.json',
            include: ['test/types/**/*.test-d.ts'],
          },
        },
      },
      {
        resolve: { alias },
        test: { name: 'architecture', include: ['test/architecture.test.ts'], ...together },
      },
    ],
    coverage: { include: ['src/**'] },
  },
})
