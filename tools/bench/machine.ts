/** The machine and the package versions of a run. */
import { readFileSync } from 'node:fs'
import { arch, availableParallelism, cpus, totalmem, type } from 'node:os'

/** Processors, memory, system and Node, as one line. */
export function machine(): string {
  // Some virtual machines have no model name. Then the architecture remains.
  const model = cpus()[0]?.model.trim().replace(/\s+/g, ' ') ?? 'unknown processor'
  const memory = (totalmem() / 1024 ** 3).toFixed(0)
  const { node, v8, undici } = process.versions
  return `${availableParallelism()} processors (${model}, ${arch()}), ${memory} GiB, ${type()}; Node ${node} with V8 ${v8} and, behind its \`fetch\`, undici ${undici}`
}

/** The compared packages, and the folders that contain them. */
const PACKAGES = {
  '../..': ['ky', 'zod', 'uuid', 'undici', 'esbuild'],
  '../packages': ['stripe', 'openai', 'axios', '@notionhq/client', '@octokit/request'],
} as const

/** Installed versions of the compared packages. */
export function versions(): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const [folder, names] of Object.entries(PACKAGES))
    for (const name of names) {
      const manifest = new URL(`${folder}/node_modules/${name}/package.json`, import.meta.url)
      const { version } = JSON.parse(readFileSync(manifest, 'utf8'))
      found.set(name, String(version))
    }
  return found
}
