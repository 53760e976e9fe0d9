import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Plugin } from 'esbuild'
import { defineConfig, type Options } from 'tsup'
import { builtPage } from './tools/build/built-page.ts'
import { sourcesWithoutComments } from './tools/build/without-comments.ts'

/** Entry points of the package; `package.json` exports each of them. */
const published = {
  index: 'src/index.ts',
  'stores/sqlite': 'src/stores/sqlite.ts',
  'stores/postgres': 'src/stores/postgres.ts',
  'stores/mysql': 'src/stores/mysql.ts',
  'stores/redis': 'src/stores/redis.ts',
  'stores/indexeddb': 'src/stores/indexeddb.ts',
  'stores/d1': 'src/stores/d1.ts',
  'stores/durable-object': 'src/stores/durable-object.ts',
  'stores/contract': 'src/stores/contract.ts',
  sandbox: 'src/sandbox/index.ts',
  'sandbox/server': 'src/sandbox/http/server.ts',
  msw: 'src/sandbox/http/msw.ts',
  undici: 'src/undici/index.ts',
  proxy: 'src/proxy/index.ts',
  'proxy/node': 'src/proxy/node.ts',
  opentelemetry: 'src/opentelemetry/index.ts',
}

/** Parts of `index` in files of their own, so that a bundler can leave the client out where only the rest is used. */
const parts = {
  'parts/aes-gcm': 'src/aes-gcm.ts',
  'parts/client': 'src/client.ts',
  'parts/errors': 'src/errors/classes.ts',
  'parts/memory': 'src/stores/memory.ts',
  'parts/money': 'src/money.ts',
  'parts/quantity': 'src/quantity.ts',
  'parts/response-info': 'src/response-info.ts',
  'parts/suggested-status': 'src/suggested-status.ts',
}

/** Folder with a declaration of each source file, which is bundled for each entry point. */
const declarations = '.tmp/types'

/** TypeScript's native compiler writes them: tsup by itself takes seven times as long for the same. */
function writeDeclarations(): void {
  const compiler = ['node_modules/typescript-native/bin/tsc', '-p', 'tsconfig.json', '--noEmit', 'false']
  // What is marked @internal would drag half of the client's types into what is published.
  const output = ['--emitDeclarationOnly', '--stripInternal', '--rootDir', 'src', '--outDir', declarations]
  execFileSync(process.execPath, [...compiler, ...output], { stdio: 'inherit' })
}
writeDeclarations()

/**
 * ky makes a `Request` when it is evaluated, which makes Node load its whole fetch: two thirds of the time that an import
 * of the client would take. So `ky-on-demand.ts` requires it, and esbuild evaluates a CommonJS module where it is required.
 */
const kyByFirstRequest: Plugin = {
  name: 'ky-by-first-request',
  setup(build) {
    const path = fileURLToPath(new URL('src/http/ky-on-demand.ts', import.meta.url))
    build.onResolve({ filter: /^ky$/ }, ({ kind }) =>
      kind === 'import-statement' ? { path } : { path: 'ky', namespace: 'one-module' },
    )
    // If esbuild makes each of ky's modules evaluable on demand, V8 optimises them less, and a call allocates 6 kB more.
    build.onLoad({ filter: /.*/, namespace: 'one-module' }, async () => {
      const options = { bundle: true, write: false, format: 'cjs', target: 'es2022', minify: true } as const
      const { outputFiles } = await build.esbuild.build({ entryPoints: ['ky'], ...options })
      return { contents: outputFiles[0]?.text ?? '' }
    })
  },
}

/** What only Node's sockets and fetch can prove is of no use in the build for browsers and other runtimes. */
const withoutNode: Plugin = {
  name: 'without-node',
  setup(build) {
    const replacement = (file: string) => fileURLToPath(new URL(`src/${file}`, import.meta.url))
    build.onResolve({ filter: /\/node\.ts$/ }, ({ importer }) =>
      /src[\\/]http[\\/]/.test(importer) ? { path: replacement('http/without-node.ts') } : undefined,
    )
    build.onResolve({ filter: /\/uuid-v5\.ts$/ }, ({ importer }) =>
      /src[\\/]runtime\.ts$/.test(importer) ? { path: replacement('uuid-v5-without-node.ts') } : undefined,
    )
  },
}

/**
 * The command runs on Node, where the client can say why it could not connect: it imports the client as programs do, and
 * so gets the build for Node.
 */
const clientOfPrograms: Plugin = {
  name: 'client-of-programs',
  setup(build) {
    build.onResolve({ filter: /^\.\.\/client\.ts$/ }, ({ importer }) =>
      /src[\\/]command[\\/]/.test(importer) ? { path: 'customer-ordering-sdk', external: true } : undefined,
    )
  },
}

const common: Options = {
  format: ['esm', 'cjs'],
  target: 'es2022',
  platform: 'neutral',
  // The files are readable as they are, so a stack trace needs no map: maps with their sources were two thirds of the package.
  sourcemap: false,
  // tsup would turn `node:sqlite` into `sqlite`, which does not exist.
  removeNodeProtocol: false,
  external: [/^node:/],
}

export default defineConfig([
  {
    ...common,
    entry: { ...published, ...parts, command: 'src/command/main.ts' },
    // Shared chunks keep one copy of the code that several entries use.
    splitting: true,
    // Without it the CommonJS output rewrites class fields into prototype methods.
    treeshake: true,
    dts: {
      entry: Object.fromEntries(
        Object.entries(published).map(([name, file]) => [
          name,
          file.replace(/^src/, declarations).replace(/ts$/, 'd.ts'),
        ]),
      ),
    },
    esbuildPlugins: [clientOfPrograms, withoutNode, builtPage, sourcesWithoutComments],
    // Not what the other build writes at the same time.
    clean: ['!node/**'],
  },
  {
    ...common,
    // docs/decisions/node-build.md
    entry: { index: published.index, undici: published.undici },
    outDir: 'dist/node',
    splitting: false,
    noExternal: ['ky', 'zod', 'uuid'],
    esbuildPlugins: [kyByFirstRequest, sourcesWithoutComments],
    clean: true,
  },
])
