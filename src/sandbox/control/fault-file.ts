import { readFaultRules } from '../service/fault-rules.ts'
import type { FaultRule } from '../service/faults.ts'
import { type DataFormat, parseDataFile } from './data-file.ts'

/**
 * Reads fault rules from a file: an array of rules without functions, in JSON or YAML 1.2 without
 * aliases.
 *
 * @throws {TypeError} if a rule is invalid; the message contains the line and the reason
 * @example
 * const faults = parseFaultRules(await readFile('faults.yaml', 'utf8'), 'yaml')
 */
export function parseFaultRules(text: string, format: DataFormat = 'json'): readonly FaultRule[] {
  return parseDataFile(text, format, '$', readFaultRules)
}
