import { defineConfig } from 'tsup'

export default defineConfig({
  entry: {
    index: 'src/index.ts',
    'stores/sqlite': 'src/stores/sqlite.ts',
    'stores/contract': 'src/stores/contract.ts',
    sandbox: 'src/sandbox/index.ts',
    msw: 'src/sandbox/msw.ts',
    'sandbox/cli': 'src/sandbox/cli.ts',
  },
  format: ['esm', 'cjs'],
  dts: true,
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
