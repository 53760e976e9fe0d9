// npm 10 drops the link to the pinned Node from node_modules/.bin, together with those of the packages for other
// platforms, which have the same name (npm 11 keeps it). Runs after `npm ci`, on the system's Node, and puts it back.
import { existsSync, symlinkSync } from 'node:fs'

const binary = `node-${process.platform}-${process.arch}/bin/node`
const modules = new URL('../node_modules/', import.meta.url)
const link = new URL('.bin/node', modules)
if (existsSync(new URL(binary, modules)) && !existsSync(link)) symlinkSync(`../${binary}`, link)
