import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { root } from '../../../tools/build/ensure-built.ts'
import { run } from '../../support/run.ts'

/** Compiles the TypeScript of a folder below `.tmp`. Returns what the compiler prints: '' if it has no objection. */
export async function compiled(folder: string, compilerOptions: object = {}): Promise<string> {
  // A reader's program may leave a variable unused.
  const options = { noUnusedLocals: false, types: ['node'], ...compilerOptions }
  const config = { extends: '../../tsconfig.test.json', compilerOptions: options, include: ['*.ts'] }
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config))
  const compiler = join(root, 'node_modules/typescript-native/bin/tsc')
  return await run(process.execPath, [compiler, '-p', folder]).then(
    () => '',
    ({ stdout, message }) => String(stdout || message),
  )
}
