import { describe, expect, it } from 'vitest'
import { type Command, type Phase, RULES } from '../../../src/orders/rules.ts'
import { effort, sample } from '../../support/effort.ts'
import { type Findings, type Setting, search } from './exhaustive.ts'

const ALL: readonly Command[] = ['create', 'enqueue', 'recover', 'resolve', 'abandon', 'forget']
/** Two calls, one fault, and one jump of the clock or top-up; every order of what they do. */
const BOUND = effort(3_000, 60_000)

const SETTINGS: readonly Setting[] = (['ref:r', 'key:k', 'anon:a'] as const).flatMap((name) =>
  [false, true].flatMap((remembersRefusals) =>
    [true, false].map((funds) => {
      const commands: readonly Command[] = name === 'anon:a' ? ['create', 'recover'] : ALL
      return { name, remembersRefusals, funds, commands, calls: 2, faults: 1, passes: 1 }
    }),
  ),
)

const titled = SETTINGS.map((setting) => {
  const { name, remembersRefusals, funds } = setting
  const service = `${remembersRefusals ? 'remembers' : 'forgets'} refusals`
  return {
    setting,
    title: `${name}, a wallet ${funds ? 'with' : 'without'} money, a service that ${service}`,
  }
})

/** A cell with the step that somebody in a hurry would write there, and what breaks. */
const WRONG: readonly (readonly [Phase, Command, step: object, breaks: string])[] = [
  ['open', 'create', { step: 'send', as: 'next' }, 'I7'],
  ['open', 'forget', { step: 'empty' }, 'I2'],
  ['busy', 'create', { step: 'send', as: 'next' }, 'I7'],
  ['created', 'create', { step: 'send', as: 'next' }, 'I'],
  ['created', 'abandon', { step: 'close' }, 'I11'],
  ['unread', 'forget', { step: 'empty' }, 'I2'],
  ['unread', 'abandon', { step: 'close' }, 'I11'],
  ['stale', 'forget', { step: 'empty' }, 'I2'],
]

function withCell(phase: Phase, command: Command, step: object, run: () => Findings): Findings {
  const row: object = RULES[phase]
  const before: unknown = Reflect.get(row, command)
  Reflect.set(row, command, [step])
  try {
    return run()
  } finally {
    Reflect.set(row, command, before)
  }
}

describe('two processes over one order', () => {
  it.each(sample(titled, 5))('keep every promise in each state: $title', ({ setting }) => {
    const { states, broken } = search(setting, BOUND)
    console.log(`${states} states${states < BOUND ? ', all there are' : ''}`)
    expect(broken).toBeUndefined()
  })
})

describe('the search', () => {
  it.each(sample(WRONG, 3))('notices it where %s × %s leads to %j', (phase, command, step, breaks) => {
    const reports = SETTINGS.filter(({ name }) => name === 'ref:r').map((setting) =>
      withCell(phase, command, step, () => search(setting, 15_000)),
    )
    expect(reports.map(({ broken }) => broken ?? '').join()).toContain(breaks)
  })
})
