import { readFaultRules } from '../service/fault-rules.ts'
import type { FaultRule } from '../service/faults.ts'
import { readData } from './yaml.ts'

/**
 * Parses the text of a file with fault rules: an array of rules, in JSON or in YAML 1.2 without
 * aliases.
 *
 * Such rules cannot contain functions or RegExps.
 *
 * @throws {TypeError} if the text or a rule is invalid, with the place and the reason
 * @example
 * const faults = parseFaultRules(await readFile('faults.yaml', 'utf8'))
 */
export function parseFaultRules(text: string): readonly FaultRule[] {
  return readFaultRules(readData(text))
}
