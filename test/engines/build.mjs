// build.mjs BUNDLER ENTRY OUT [PLATFORM]: builds one file for browsers or for Node, with each
// bundler's simplest settings.
import { basename, dirname } from 'node:path'

const [name, entry, out, platform = 'browser'] = process.argv.slice(2)

const bundlers = {
  async esbuild() {
    const { build } = await import('esbuild')
    await build({ entryPoints: [entry], outfile: out, bundle: true, minify: true, format: 'esm', platform })
  },
  async worker() {
    const { build } = await import('esbuild')
    const conditions = ['workerd', 'worker', 'browser']
    await build({ entryPoints: [entry], outfile: out, bundle: true, format: 'esm', conditions })
  },
  async vite() {
    const { build } = await import('vite')
    const lib = { entry, formats: ['es'], fileName: () => basename(out) }
    const root = dirname(entry)
    await build({
      configFile: false,
      logLevel: 'warn',
      root,
      build: { lib, outDir: dirname(out), emptyOutDir: false, minify: true },
    })
  },
  async rollup() {
    const { rollup } = await import('rollup')
    const { nodeResolve } = await import('@rollup/plugin-node-resolve')
    const bundle = await rollup({
      input: entry,
      external: /^node:/,
      plugins: [nodeResolve(platform === 'node' ? { exportConditions: ['node'] } : { browser: true })],
      onwarn: (warning) => {
        // Ignore rollup's warnings about the files of a dependency.
        const files = [warning.id, ...(warning.ids ?? [])].join()
        if (warning.code !== 'UNRESOLVED_IMPORT' && !files.includes('customer-ordering-sdk/')) return
        throw new Error(`${warning.code}: ${warning.message}`)
      },
    })
    await bundle.write({ file: out, format: 'es', inlineDynamicImports: true })
    await bundle.close()
  },
  async webpack() {
    const { default: webpack } = await import('webpack')
    const compiler = webpack({
      mode: 'production',
      target: platform === 'node' ? 'node' : 'web',
      entry,
      output: { path: dirname(out), filename: basename(out) },
      performance: false,
    })
    const stats = await new Promise((resolve, reject) =>
      compiler.run((error, result) => (error ? reject(error) : resolve(result))),
    )
    if (stats.hasErrors() || stats.hasWarnings()) throw new Error(stats.toString({ colors: false }))
  },
}

await bundlers[name]()
