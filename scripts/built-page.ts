import { pathToFileURL } from 'node:url'
import type { Plugin } from 'esbuild'

/** Puts the text of the live page's script in the place of the module that bundles it. */
export const builtPage: Plugin = {
  name: 'built-page',
  setup(build) {
    build.onLoad({ filter: /[\\/]sandbox[\\/]page[\\/]script\.ts$/ }, async ({ path }) => {
      const { pageScript } = await import(pathToFileURL(path).href)
      return { contents: `export const pageScript = () => ${JSON.stringify(pageScript())}` }
    })
  },
}
