// Links that npm does not make. Runs after `npm ci`, on the system's Node.
import { existsSync, mkdirSync, symlinkSync } from 'node:fs'

const root = new URL('../../', import.meta.url)

/** Creates a link unless it exists. */
function link(place, target) {
  const at = new URL(place, root)
  if (existsSync(at)) return
  mkdirSync(new URL('.', at), { recursive: true })
  symlinkSync(target, at)
}

// npm 10 deletes the pinned Node from node_modules/.bin together with the links of packages for
// other platforms, which have the same name. npm 11 keeps it.
const binary = `node-${process.platform}-${process.arch}/bin/node`
if (existsSync(new URL(`node_modules/${binary}`, root))) link('node_modules/.bin/node', `../${binary}`)

// The examples import the package by its name, also those that install nothing.
link('examples/node_modules/customer-ordering-sdk', '../..')
