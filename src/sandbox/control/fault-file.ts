import { readFaultRules } from '../service/fault-rules.ts'
import type { FaultRule } from '../service/faults.ts'
import { type DataFormat, parseDataFile } from './data-file.ts'

/**
 * Reads fault rules from the text of a file, an array of rules without functions. Throws a TypeError that says in which
 * line the first mistake is and what is wrong there. YAML is read
 * by the rules of YAML 1.2, without aliases.
 */
export function parseFaultRules(text: string, format: DataFormat = 'json'): readonly FaultRule[] {
  return parseDataFile(text, format, '$', readFaultRules)
}
