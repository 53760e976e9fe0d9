// Restores the link to the pinned Node in node_modules/.bin after `npm ci`. npm 10 deletes it
// together with the links of packages for other platforms, which have the same name (npm 11 keeps
// it). Runs on the system's Node.
import { existsSync, symlinkSync } from 'node:fs'

const binary = `node-${process.platform}-${process.arch}/bin/node`
const modules = new URL('../../node_modules/', import.meta.url)
const link = new URL('.bin/node', modules)
if (existsSync(new URL(binary, modules)) && !existsSync(link)) symlinkSync(`../${binary}`, link)
