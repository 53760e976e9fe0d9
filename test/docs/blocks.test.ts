import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { serveSandbox } from '../../src/sandbox/http/server.ts'
import { createSandbox } from '../../src/sandbox/index.ts'
import { isBuilt, root } from '../../tools/build/ensure-built.ts'
import { sample } from '../support/effort.ts'
import { run } from '../support/run.ts'
import { compiled } from './support/compile.ts'
import { type Block, blocksOf, readPages } from './support/pages.ts'

// The folder is inside the project, so that the package's own name resolves to its build.
const folder = join(root, '.tmp/docs')

const blocks = readPages().flatMap(blocksOf)
// These need other packages: frameworks.test.ts and proxy.test.ts run them.
const modules = blocks.filter(
  ({ info, at, code }) =>
    info === 'ts' && !/^docs\/guide\/(frameworks)\.md/.test(at) && !/ from '(express|fastify)'/.test(code),
)

const fileOf = (block: Block): string => join(folder, `${block.at.replaceAll(/\W+/g, '-')}.ts`)

describe('blocks of code in README.md and docs', () => {
  beforeAll(async () => {
    if (!isBuilt()) throw new Error('dist is missing or older than src: npm run build')
    await rm(folder, { recursive: true, force: true })
    await mkdir(folder, { recursive: true })
    await Promise.all(modules.map((block) => writeFile(fileOf(block), block.code)))
  })

  afterAll(() => rm(folder, { recursive: true, force: true }))

  test('blocks are TypeScript that is run, or not a program', () => {
    const kinds = new Set(['ts', 'sh', 'json', 'yaml', 'mermaid', 'sql', 'text', ''])
    expect(blocks.filter(({ info }) => !kinds.has(info)).map(({ at, info }) => `${at} ${info}`)).toEqual([])
    const disguised = blocks.filter(({ info, code }) => info !== 'ts' && /^(import|const|await) /m.test(code))
    expect(disguised.map(({ at }) => at)).toEqual([])
    expect(modules.length).toBeGreaterThan(0)
  })

  test('blocks of TypeScript compile', async () => {
    const buildInfo = { incremental: true, tsBuildInfoFile: join(root, '.tmp/tsc/blocks') }
    expect(await compiled(folder, buildInfo)).toBe('')
  })

  test.concurrent.each(sample(modules, 16))(
    'the block at $at prints the documented output',
    async (block) => {
      // Each block has its own server, so blocks may run in any sequence.
      const sandbox = createSandbox()
      const server = await serveSandbox(sandbox)
      const cwd = await mkdtemp(join(tmpdir(), 'docs-'))
      // Not onTestFinished(), which does not know which of the concurrent tests has called it.
      try {
        const { stdout } = await run(process.execPath, [fileOf(block)], {
          cwd,
          timeout: 60_000,
          env: {
            ...process.env,
            CUSTOMER_ORDERING_BASE_URL: server.url,
            CUSTOMER_ORDERING_API_KEY: sandbox.apiKey,
          },
        })
        for (const [expected, printed] of expectedOutput(block.code, stdout)) expect(printed).toBe(expected)
      } finally {
        await server.close()
        await rm(cwd, { recursive: true, force: true })
      }
    },
  )
})

/**
 * Comments after `console.log(…)` state its output, and may continue after a colon. Each is paired
 * with its line of the output, in sequence. Lines without such a comment may come between.
 */
function expectedOutput(code: string, stdout: string): readonly (readonly [string, string])[] {
  const comments = [...code.matchAll(/\bconsole\.log\(.*\) \/\/ (.+)$/gm)].map(([, text]) => text ?? '')
  const lines = stdout.split('\n').filter((line) => line !== '')
  return comments.map((comment) => {
    const at = lines.findIndex((line) => comment === line || comment.startsWith(`${line}:`))
    const printed = at < 0 ? `${comment} is not in the output: ${lines.join('; ')}` : comment
    if (at >= 0) lines.splice(0, at + 1)
    return [comment, printed]
  })
}
