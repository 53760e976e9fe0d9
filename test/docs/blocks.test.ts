import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isBuilt, root } from '../../scripts/ensure-built.ts'
import { serveSandbox } from '../../src/sandbox/http/server.ts'
import { createSandbox } from '../../src/sandbox/index.ts'
import { sample } from '../support/effort.ts'
import { type Block, blocksOf, readPages } from './support/pages.ts'

const run = promisify(execFile)

// Inside the project, so that the package's own name leads to its build.
const folder = join(root, '.tmp/docs')

const blocks = readPages().flatMap(blocksOf)
// These pages need what they are about: frameworks.test.ts, test/stores/postgres/orms.test.ts.
const modules = blocks.filter(
  ({ info, at }) => info === 'ts' && !/^docs\/guide\/(frameworks|orms)\.md/.test(at),
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
    const kinds = new Set(['ts', 'sh', 'json', 'yaml', 'mermaid', 'text', ''])
    expect(blocks.filter(({ info }) => !kinds.has(info)).map(({ at, info }) => `${at} ${info}`)).toEqual([])
    const disguised = blocks.filter(({ info, code }) => info !== 'ts' && /^(import|const|await) /m.test(code))
    expect(disguised.map(({ at }) => at)).toEqual([])
    expect(modules.length).toBeGreaterThan(0)
  })

  test('blocks of TypeScript compile', async () => {
    const config = join(folder, 'tsconfig.json')
    await writeFile(
      config,
      JSON.stringify({
        extends: '../../tsconfig.test.json',
        // A reader's program may leave a variable unused.
        compilerOptions: { noUnusedLocals: false, types: ['node'] },
        include: ['*.ts'],
      }),
    )
    const failure = await run(process.execPath, [
      join(root, 'node_modules/typescript-native/bin/tsc'),
      '-p',
      config,
    ]).then(
      () => '',
      ({ stdout, message }) => String(stdout || message),
    )
    expect(failure).toBe('')
  })

  test.concurrent.each(sample(modules, 4))(
    'the block at $at runs and prints the documented output',
    async (block) => {
      // A server of its own for each block: they may run in any sequence.
      const sandbox = createSandbox()
      const server = await serveSandbox(sandbox)
      const cwd = await mkdtemp(join(tmpdir(), 'docs-'))
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
 * Comments after `console.log(…)` say what it prints, and may go on after a colon. Each is paired with its line of the
 * output, in their sequence; lines without such a comment lie between.
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
