import { defineConfig } from 'tsup'

/** Entry points of the package; `package.json` exports each of them. */
const published = {
  index: 'src/index.ts',
  'stores/sqlite': 'src/stores/sqlite.ts',
  'stores/postgres': 'src/stores/postgres.ts',
  'stores/redis': 'src/stores/redis.ts',
  'stores/indexeddb': 'src/stores/indexeddb.ts',
  'stores/contract': 'src/stores/contract.ts',
  sandbox: 'src/sandbox/index.ts',
  'sandbox/server': 'src/sandbox/server.ts',
  undici: 'src/undici/index.ts',
  msw: 'src/sandbox/msw.ts',
}

/** Parts of `index` in files of their own, so that a bundler can leave the client out where only the rest is used. */
const parts = {
  'parts/client': 'src/client.ts',
  'parts/errors': 'src/errors.ts',
  'parts/memory': 'src/stores/memory.ts',
  'parts/money': 'src/money.ts',
  'parts/quantity': 'src/quantity.ts',
  'parts/response-info': 'src/response-info.ts',
}

export default defineConfig({
  entry: { ...published, ...parts, 'sandbox/cli': 'src/sandbox/cli.ts' },
  format: ['esm', 'cjs'],
  dts: { entry: published },
  target: 'es2022',
  platform: 'neutral',
  // Shared chunks keep one copy of the error classes per format, so `instanceof` holds across entries.
  splitting: true,
  // Without it the CommonJS output rewrites class fields into prototype methods.
  treeshake: true,
  sourcemap: true,
  clean: true,
  // tsup would turn `node:sqlite` into `sqlite`, which does not exist.
  removeNodeProtocol: false,
  external: [/^node:/],
})
