import { pathToFileURL } from 'node:url'
import type { Plugin } from 'esbuild'

/** Replaces the module that bundles the live page's script with the script's text. */
export const builtPage: Plugin = {
  name: 'built-page',
  setup(build) {
    build.onLoad({ filter: /[\\/]sandbox[\\/]page[\\/]script\.ts$/ }, async ({ path }) => {
      const { pageScript } = await import(pathToFileURL(path).href)
      return { contents: `export const pageScript = () => ${JSON.stringify(pageScript())}` }
    })
  },
}
