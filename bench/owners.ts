/** Whose function a place in a profile is. */
import { readFileSync } from 'node:fs'

/** A function as the inspector names it; lines and columns count from 0. */
export interface Frame {
  readonly functionName: string
  readonly url: string
  readonly lineNumber: number
  readonly columnNumber: number
}

/** The package or part of Node that a function belongs to, and its file there. */
export interface Owner {
  readonly name: string
  readonly file: string
  /** The function itself, as it is listed. */
  readonly title: string
}

/** The owner of the time in which nothing is done. */
export const IDLE = 'idle'
export const PACKAGE = 'this package'
const FETCH = 'Node: fetch'
const FOR = ', for '
const modules = new Map<string, readonly string[]>()

/** The module that each line of a built file was written in: the bundler names it above its code. */
function modulesOf(url: string): readonly string[] {
  const known = modules.get(url)
  if (known !== undefined) return known
  let module = url
  const found = readFileSync(new URL(url), 'utf8')
    .split('\n')
    .map((line) => {
      const [, named] = /^\/\/ ((?:src|node_modules)\/.+|by-first-call:.+)$/.exec(line) ?? []
      if (named !== undefined) module = `/${named}`
      return module
    })
  modules.set(url, found)
  return found
}

/** The file that a function was written in. */
function sourceOf({ url, lineNumber }: Frame): string {
  if (!url.startsWith('file:') || url.includes('/node_modules/') || !url.includes('/dist/')) return url
  return modulesOf(url)[lineNumber] ?? url
}

function packageOf(source: string): string | undefined {
  return /(?:.*\/node_modules\/|by-first-call:)((?:@[^/]+\/)?[^/]+)/.exec(source)?.[1]
}

const parse = JSON.parse
function parseJson(...parameters: Parameters<typeof parse>): ReturnType<typeof parse> {
  return parse(...parameters)
}

/** Gives `JSON.parse` a line of its own in profiles: V8 counts it for whoever calls it. */
export function nameJsonParse(): void {
  JSON.parse = parseJson
}

/** What the engine does besides functions. */
const ENGINE: Readonly<Record<string, string>> = {
  '(garbage collector)': 'garbage collector',
  '(idle)': IDLE,
  '(program)': 'native code outside of functions',
  '(root)': 'the engine',
  // The heap's profiler names these.
  '(V8 API)': 'native code outside of functions',
  '(BYTECODE_COMPILER)': 'the engine',
  '(JS)': 'the engine',
}

/** Whose function it is; a native one, such as `Map`, is its caller's. */
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
  // The parser of HTTP is compiled to WebAssembly.
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
