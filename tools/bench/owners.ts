/** Finds the owner of a function in a profile. */
import { readFileSync } from 'node:fs'

/** A function as the inspector identifies it. Lines and columns count from 0. */
export interface Frame {
  readonly functionName: string
  readonly url: string
  readonly lineNumber: number
  readonly columnNumber: number
}

/** The package or part of Node that owns a function, and its file there. */
export interface Owner {
  readonly name: string
  readonly file: string
  /** The name of the function in a list. */
  readonly title: string
}

/** The owner of idle time. */
export const IDLE = 'idle'
export const PACKAGE = 'this package'
const FETCH = 'Node: fetch'
const FOR = ', for '
const modules = new Map<string, readonly string[]>()

/** The source module of each line of a built file. The bundler names it above the module's code. */
function modulesOf(url: string): readonly string[] {
  const known = modules.get(url)
  if (known !== undefined) return known
  let module = url
  const found = readFileSync(new URL(url), 'utf8')
    .split('\n')
    .map((line) => {
      const [, named] = /^\/\/ ((?:src|node_modules)\/.+|one-module:.+)$/.exec(line) ?? []
      if (named !== undefined) module = `/${named}`
      return module
    })
  modules.set(url, found)
  return found
}

/** The source file of a function. */
function sourceOf({ url, lineNumber }: Frame): string {
  if (!url.startsWith('file:') || url.includes('/node_modules/') || !url.includes('/dist/')) return url
  return modulesOf(url)[lineNumber] ?? url
}

function packageOf(source: string): string | undefined {
  return /(?:.*\/node_modules\/|one-module:)((?:@[^/]+\/)?[^/]+)/.exec(source)?.[1]
}

const parse = JSON.parse
function parseJson(...parameters: Parameters<typeof parse>): ReturnType<typeof parse> {
  return parse(...parameters)
}

/** Gives `JSON.parse` its own line in profiles, because V8 counts its time for its caller. */
export function nameJsonParse(): void {
  JSON.parse = parseJson
}

/** Work of the engine outside functions. */
const ENGINE: Readonly<Record<string, string>> = {
  '(garbage collector)': 'garbage collector',
  '(idle)': IDLE,
  '(program)': 'native code outside of functions',
  '(root)': 'the engine',
  // The heap profiler uses these names.
  '(V8 API)': 'native code outside of functions',
  '(BYTECODE_COMPILER)': 'the engine',
  '(JS)': 'the engine',
}

/** Returns the owner of a function. A native function, such as `Map`, belongs to its caller. */
export function ownerOf(frame: Frame, caller: Owner | undefined): Owner {
  const source = sourceOf(frame)
  const called = frame.functionName === '' ? 'a function without a name' : `\`${frame.functionName}\``
  const owner = (name: string, file: string): Owner => ({ name, file, title: `${called}, ${file}` })
  if (source === '') {
    const name = ENGINE[frame.functionName]
    if (name !== undefined) return { name, file: name, title: name }
    if (caller === undefined || caller.title === ENGINE['(root)']) return owner('the engine', 'native')
    const [, callers = caller.title] = caller.title.split(FOR)
    return { ...caller, title: `${called}${FOR}${callers}` }
  }
  if (frame.functionName === parseJson.name) {
    const name = '`JSON.parse`'
    return { name, file: name, title: name }
  }
  // The HTTP parser is compiled to WebAssembly.
  if (source.startsWith('wasm:')) return owner(FETCH, 'parser of HTTP')
  if (source.startsWith('node:')) {
    if (/undici/.test(source)) return owner(FETCH, source)
    return owner(
      /webstreams|streams|^node:stream/.test(source) ? 'Node: streams' : 'Node: sockets, timers and the rest',
      source,
    )
  }
  const dependency = packageOf(source)
  if (dependency !== undefined) return owner(dependency, dependency)
  const [, own] = /\/(src\/.*)$/.exec(source) ?? []
  if (own !== undefined) return owner(PACKAGE, own)
  return /\/dist\//.test(source) ? owner(PACKAGE, 'the build') : owner('the benchmark', 'bench')
}
