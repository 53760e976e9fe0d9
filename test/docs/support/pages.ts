import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { root } from '../../../tools/build/ensure-built.ts'

export interface Page {
  readonly path: string
  readonly text: string
}

export interface Block {
  /** Page and line of its opening fence, for example `docs/errors.md:12`. */
  readonly at: string
  readonly info: string
  readonly code: string
}

/** All pages: those of the project's folder and of `docs`, and the READMEs of test and tools. */
export function readPages(): readonly Page[] {
  const top = [
    ...readdirSync(root).filter((name) => name.endsWith('.md')),
    'test/README.md',
    'tools/README.md',
  ]
  const docs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`)
  return [...top, ...docs].toSorted().map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))
}

export function blocksOf({ path, text }: Page): readonly Block[] {
  const blocks: Block[] = []
  let open: { readonly line: number; readonly info: string; readonly lines: string[] } | undefined
  for (const [index, line] of text.split('\n').entries()) {
    const fence = /^ *```+(.*)$/.exec(line)
    if (open === undefined) {
      if (fence !== null) open = { line: index + 1, info: (fence[1] ?? '').trim(), lines: [] }
    } else if (fence === null) open.lines.push(line)
    else {
      blocks.push({ at: `${path}:${open.line}`, info: open.info, code: `${open.lines.join('\n')}\n` })
      open = undefined
    }
  }
  if (open !== undefined) throw new Error(`${path}:${open.line}: the block has no end`)
  return blocks
}

export function proseOf({ text }: Page): string {
  return text.replaceAll(/^ *```[\s\S]*?^ *```$/gm, '')
}

/** The blocks of TypeScript of the pages whose path begins with this, and that mention a name. */
export const programsOf = (path: string, name = ''): readonly string[] =>
  readPages()
    .filter((page) => page.path.startsWith(path))
    .flatMap(blocksOf)
    .filter(({ info, code }) => info === 'ts' && code.includes(name))
    .map(({ code }) => code)

/** What programs export. `name` names their folder: a file is loaded once. */
export async function exportsOf<Exports>(name: string, programs: readonly string[]): Promise<Exports> {
  const folder = join(root, '.tmp', name)
  await mkdir(folder, { recursive: true })
  const exported: unknown[] = []
  for (const [index, code] of programs.entries()) {
    const file = join(folder, `${index}.ts`)
    await writeFile(file, code)
    exported.push(await import(file))
  }
  await rm(folder, { recursive: true })
  return Object.assign({}, ...exported)
}
