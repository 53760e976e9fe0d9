/** Measures the size of an installation from the packages that are already installed here. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Packages, files and bytes, including dependencies. */
export interface Footprint {
  readonly packages: number
  readonly files: number
  readonly bytes: number
}

/** Bytes of the packed package: downloaded and unpacked. */
export interface PackedSize {
  readonly packed: number
  readonly unpacked: number
  readonly files: number
}

const root = fileURLToPath(new URL('../..', import.meta.url))
const peers = fileURLToPath(new URL('../packages', import.meta.url))

/** Folders of a package and of all its dependencies. */
function closure(folder: string, name: string, found: Set<string> = new Set(), from = ''): Set<string> {
  // Search as Node does: in the package that needs it, then in the folders above.
  const places = from === '' ? [] : [join(from, 'node_modules', name)]
  const place = [...places, join(folder, 'node_modules', name)].find((path) =>
    statSync(path, { throwIfNoEntry: false }),
  )
  if (place === undefined) throw new Error(`${name} is not installed in ${folder}`)
  if (found.has(place)) return found
  found.add(place)
  const { dependencies = {} } = JSON.parse(readFileSync(join(place, 'package.json'), 'utf8'))
  for (const dependency of Object.keys(dependencies)) closure(folder, dependency, found, place)
  return found
}

function contentOf(folder: string): { files: number; bytes: number } {
  let [files, bytes] = [0, 0]
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.name === 'node_modules') continue
    const path = join(folder, entry.name)
    const inside = entry.isDirectory() ? contentOf(path) : { files: 1, bytes: statSync(path).size }
    files += inside.files
    bytes += inside.bytes
  }
  return { files, bytes }
}

function sum(folders: Iterable<string>): Footprint {
  let total: Footprint = { packages: 0, files: 0, bytes: 0 }
  for (const folder of folders) {
    const { files, bytes } = contentOf(folder)
    total = { packages: total.packages + 1, files: total.files + files, bytes: total.bytes + bytes }
  }
  return total
}

/** The size of the file that `npm pack` would write. */
export function measurePacked(): PackedSize {
  const listed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [{ size, unpackedSize, entryCount }] = JSON.parse(listed)
  return { packed: size, unpacked: unpackedSize, files: entryCount }
}

/** The footprints of this package, packed and with its dependencies, and of the others. */
export function measureFootprint({ unpacked, files }: PackedSize): ReadonlyMap<string, Footprint> {
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const needed = sum(Object.keys(dependencies).flatMap((name) => [...closure(root, name)]))
  const ours = {
    packages: needed.packages + 1,
    files: needed.files + files,
    bytes: needed.bytes + unpacked,
  }
  const others = Object.entries({
    'octokit request': '@octokit/request',
    notion: '@notionhq/client',
    axios: 'axios',
    stripe: 'stripe',
    openai: 'openai',
  }).map(([name, pkg]) => [name, sum(closure(peers, pkg))] as const)
  return new Map<string, Footprint>([['this package', ours], ['ky', sum(closure(root, 'ky'))], ...others])
}
