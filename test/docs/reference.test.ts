import { join } from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'
import { root } from '../../tools/build/ensure-built.ts'

const ENTRIES = `
  index undici/index proxy/index proxy/node opentelemetry/index sandbox/index sandbox/http/server sandbox/http/msw
  ${'sqlite postgres mysql redis indexeddb d1 durable-object contract'.replaceAll(/\S+/g, 'stores/$&')}
`
  .trim()
  .split(/\s+/)
  .map((name) => join(root, `src/${name}.ts`))

/** Methods called by the language, or by the client through an interface that documents them. */
const NOT_FOR_CALLERS = new Set(['toJSON', 'then', 'catch', 'finally'])
const STORES = /^(?:Memory|Sqlite|Postgres|Mysql|Redis|IndexedDb|D1|DurableObject|Engine)Store$/
const CALLED_BY_THE_CLIENT = new Set(['get', 'insert', 'update', 'listOpen', 'list', 'prune', 'close'])

/** Only the package's source, without the libraries of the language and of other packages. */
function readSource(): ts.Program {
  const options: ts.CompilerOptions = {
    noLib: true,
    types: [],
    target: ts.ScriptTarget.Latest,
    module: ts.ModuleKind.NodeNext,
    allowImportingTsExtensions: true,
  }
  const host = ts.createCompilerHost(options)
  host.resolveModuleNameLiterals = (literals, from) =>
    literals.map(({ text }) => ({
      resolvedModule: text.startsWith('.')
        ? { resolvedFileName: join(from, '..', text), extension: ts.Extension.Ts }
        : undefined,
    }))
  return ts.createProgram(ENTRIES, options, host)
}

function publicNames() {
  const program = readSource()
  const checker = program.getTypeChecker()
  /**
   * `name` is for example `CustomerOrderingClient.close`. `called` is true for code that callers
   * call: an exported function, or a method of an exported class.
   */
  const describe = (symbol: ts.Symbol, name: string, called: boolean) => {
    const comment = ts.displayPartsToString(symbol.getDocumentationComment(checker))
    /** The first paragraph of its comment, which an editor shows first. */
    const summary = (comment.split(/\n\s*\n/)[0] ?? '').replaceAll(/\s+/g, ' ')
    const tags = new Set(symbol.getJsDocTags(checker).map((tag) => tag.name))
    return { name, called, documented: comment !== '', summary, tags }
  }
  const membersOf = (owner: ts.Symbol) =>
    [...(owner.members?.values() ?? [])].flatMap((member) => {
      const declaration = member.declarations?.[0]
      if (declaration === undefined) return []
      const hidden =
        ts.getCombinedModifierFlags(declaration) & ts.ModifierFlags.Private ||
        !(member.flags & (ts.SymbolFlags.Method | ts.SymbolFlags.Property | ts.SymbolFlags.Accessor)) ||
        member.name.startsWith('__@') ||
        member.name.startsWith('#') ||
        // The published types do not contain it.
        ts.getJSDocTags(declaration).some(({ tagName }) => tagName.text === 'internal') ||
        // A field that an option must not have: `busyTimeout?: undefined`.
        /\?: (?:undefined|never)$/.test(declaration.getText())
      if (hidden) return []
      const called =
        (owner.flags & ts.SymbolFlags.Class) !== 0 &&
        (member.flags & ts.SymbolFlags.Method) !== 0 &&
        !NOT_FOR_CALLERS.has(member.name) &&
        !(STORES.test(owner.name) && CALLED_BY_THE_CLIENT.has(member.name))
      return [describe(member, `${owner.name}.${member.name}`, called)]
    })
  const exported = ENTRIES.flatMap((entry) => {
    const file = program.getSourceFile(entry)
    const module = file && checker.getSymbolAtLocation(file)
    return module === undefined ? [] : checker.getExportsOfModule(module)
  }).map((symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol))
  return [...new Set(exported)].flatMap((symbol) => [
    describe(symbol, symbol.name, (symbol.flags & ts.SymbolFlags.Function) !== 0),
    ...membersOf(symbol),
  ])
}
const names = publicNames()

test('every public name and every member of one says what it means', () => {
  expect(names.length).toBeGreaterThan(400)
  expect(names.filter(({ documented }) => !documented).map(({ name }) => name)).toEqual([])
})

test('an editor shows one line first: a longer comment begins with a sentence of its own', () => {
  const long = names.filter(({ summary }) => summary.length > 110 && /\.\)? ['"`(]?[A-Z]/.test(summary))
  expect(long.map(({ name }) => name)).toEqual([])
})

test('every function and method for callers has an example', () => {
  const without = names.filter(({ called, tags }) => called && !tags.has('example'))
  expect(without.map(({ name }) => name)).toEqual([])
})

/** Functions that reject no argument and use no network. */
const NEVER_THROW = new Set([
  'isCustomerOrderingError',
  'suggestedStatus',
  'responseInfo',
  'observeOpenOrders',
  'traceHeaders',
  'createTestClock',
  'storeContract',
  'explainHistory',
  'sandboxHandlers',
])

test('every function and method for callers names the errors that it throws', () => {
  const without = names.filter(
    ({ called, name, tags }) => called && !tags.has('throws') && !NEVER_THROW.has(name),
  )
  expect(without.map(({ name }) => name)).toEqual([])
})
