/** Tests every fault on every kind of connection with every transport on every version of Node. */
import { beforeAll, describe, expect, it } from 'vitest'
import { nodeVersions } from '../../package/node-versions.ts'
import { OUTCOMES } from '../core.ts'
import { CELLS, FAULTS } from './faults.ts'
import { type MatrixResult, runMatrix } from './matrix.ts'

let runs: ReadonlyMap<string, Promise<MatrixResult>>

beforeAll(() => {
  // Run concurrently, because most of the time is spent waiting for connection timeouts of the
  // system.
  runs = new Map(nodeVersions().map((version) => [version, runMatrix(version)]))
})

describe.each(nodeVersions())('on Node %s', (version) => {
  let matrix: MatrixResult
  beforeAll(async () => {
    const pending = runs.get(version)
    if (pending === undefined) throw new Error(`Node ${version} did not run`)
    matrix = await pending
  })

  it('the matrix runs on this version without unhandled rejections', () => {
    expect(matrix.version).toMatch(new RegExp(`^${version.replaceAll('.', '\\.')}(\\.|$)`))
    expect(matrix.unhandled).toEqual([])
  })

  it.each(CELLS)('$name', ({ name }) => {
    const result = matrix.results.find((each) => each.name === name)
    expect(result ?? 'did not run').toMatchObject({ problems: [] })
  })
})

/**
 * Rows caused by a response of the service or by the caller, not by the network.
 * test/server/outcome-rows.test.ts covers them.
 */
const ANSWERS = `
  contradicted created_flawed refused refused_unprocessed unauthorized forbidden too_early
  rate_limited conflict in_progress conflict_unknown unrecognised transport_closed not_sent
`
  .trim()
  .split(/\s+/)

it('the matrix has a fault for every row of the outcome table that a network can cause', () => {
  const rows = new Set(FAULTS.flatMap(({ row }) => row))
  expect([...rows, ...ANSWERS].toSorted()).toEqual(Object.keys(OUTCOMES).toSorted())
})
