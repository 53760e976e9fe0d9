/**
 * The mutated modules and the tests that judge them, by folder, so that files may be renamed,
 * merged or split.
 */
import { existsSync, readdirSync } from 'node:fs'
import { basename } from 'node:path'

const SOURCE = new URL('../../../src/', import.meta.url)

export interface Module {
  /** Folder and file without extension: `orders/protocol/rules`. */
  readonly name: string
  /** The folder of its survivors, which may move from file to file. */
  readonly folder: string
  /**
   * Globs below `test`. Put the tests that are likely to fail first, because the first failure ends
   * a mutant's run.
   */
  readonly tests: readonly string[]
}

interface Folder {
  readonly folder: string
  /** Tests of callers, which judge what the module's own tests do not. */
  readonly effects: readonly string[]
  /**
   * Files that are not mutated: tests of sockets or message texts judge them, or they only call
   * mutated code.
   */
  readonly leftOut: readonly string[]
}

const CORE = [
  'client/create/causes.test.ts',
  'client/**/{idempotency,sequences,conflicts,anonymous,generations,retry,timeouts,abort,mistakes-of-callers}.test.ts',
  'client/**/{recover,resolve,reconcile,remembered,pruning,create-many,close,codec,hooks}.test.ts',
  'client/**/{api-key-rotation,store-faults,contradictions,claims,long-list,hidden-retries}.test.ts',
  'client/{create,recover}/*.test.ts',
  'client/setup/{secrets,options}.test.ts',
  'client/stored-rows/*.test.ts',
  'proxy/client.test.ts',
  'unit/messages.test.ts',
]

const FOLDERS: readonly Folder[] = [
  { folder: 'identity', effects: [], leftOut: [] },
  { folder: 'orders/record', effects: CORE, leftOut: [] },
  { folder: 'orders/protocol', effects: CORE, leftOut: [] },
  {
    folder: 'orders/sending',
    effects: ['unit/orders/record/journal.test.ts', ...CORE],
    leftOut: ['order-errors'],
  },
  {
    folder: 'orders/commands',
    effects: CORE,
    leftOut: ['create-many', 'reconcile', 'remembered', 'resolve', 'wait-for'],
  },
  {
    folder: 'lists',
    effects: ['client/**/{paging,reads,close}.test.ts', 'property/prefetch.test.ts'],
    leftOut: [],
  },
  {
    folder: 'http',
    effects: ['client/**/{reads,retry,request,timeouts}.test.ts'],
    leftOut: ['attempt', 'ky-transport', 'node', 'path', 'request', 'transport'],
  },
]

for (const { folder, leftOut } of FOLDERS)
  for (const file of leftOut)
    if (!existsSync(new URL(`${folder}/${file}.ts`, SOURCE)))
      throw new Error(
        `tools/packages/mutation/modules.ts leaves out ${folder}/${file}.ts, which does not exist`,
      )

export const MODULES: readonly Module[] = FOLDERS.flatMap(({ folder, effects, leftOut }) =>
  readdirSync(new URL(folder, SOURCE))
    .map((file) => basename(file, '.ts'))
    .filter((file) => !leftOut.includes(file))
    .map((file) => {
      const own = [
        `unit/${folder}/${file}.test.ts`,
        `property/${file}.test.ts`,
        `unit/${folder}/**/*.test.ts`,
      ]
      return { name: `${folder}/${file}`, folder, tests: [...own, ...effects] }
    }),
)
