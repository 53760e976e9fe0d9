import { readFaultRules } from '../service/fault-rules.ts'
import type { FaultRule } from '../service/faults.ts'
import { type DataFormat, parseDataFile } from './data-file.ts'

/**
 * Parses the text of a file with fault rules: an array of rules, in JSON or in YAML 1.2 without
 * aliases. Such rules cannot contain functions.
 *
 * @param format default `'json'`
 * @throws {TypeError} if the text or a rule is invalid. The message contains the line and the
 *   reason.
 * @example
 * const faults = parseFaultRules(await readFile('faults.yaml', 'utf8'), 'yaml')
 */
export function parseFaultRules(text: string, format: DataFormat = 'json'): readonly FaultRule[] {
  return parseDataFile(text, format, '$', readFaultRules)
}
