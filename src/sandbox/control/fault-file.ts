import { readFaultRules } from '../service/fault-rules.ts'
import type { FaultRule } from '../service/faults.ts'
import { type DataFormat, parseDataFile } from './data-file.ts'

/**
 * Parses the text of a file with fault rules: an array of rules, in JSON or in YAML 1.2 without
 * aliases.
 *
 * Such rules cannot contain functions or RegExps.
 *
 * @param format default `'json'`
 * @throws {TypeError} if the text or a rule is invalid. The message contains the reason
 *   and, if known, the line.
 * @example
 * const faults = parseFaultRules(await readFile('faults.yaml', 'utf8'), 'yaml')
 */
export function parseFaultRules(text: string, format: DataFormat = 'json'): readonly FaultRule[] {
  return parseDataFile(text, format, '$', readFaultRules)
}
