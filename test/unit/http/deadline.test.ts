import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { Deadline, Interruption } from '../../../src/http/deadline.ts'
import { fakeRuntime } from '../../support/runtime.ts'
import { unhandledBy } from '../unhandled.ts'

const never = (): Promise<never> => new Promise(() => {})
const why = (ended: unknown): unknown => (ended instanceof Interruption ? ended.why : ended)
const listeners = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length

test('the time of a call counts by the monotonic clock, to its last fraction', async () => {
  const runtime = fakeRuntime()
  await runtime.advance(5000)
  const deadline = new Deadline(runtime, 1000, undefined)
  expect([deadline.startedAt, deadline.elapsed(), deadline.remaining()]).toEqual([5000, 0, 1000])
  await runtime.advance(400)
  runtime.jump(-1_000_000)
  expect([deadline.elapsed(), deadline.remaining(), deadline.over()]).toEqual([400, 600, undefined])
  runtime.jump(5_000_000)
  await runtime.advance(599.5)
  expect([deadline.elapsed(), deadline.over()]).toEqual([999.5, undefined])
  await runtime.advance(0.5)
  expect([deadline.elapsed(), deadline.remaining(), why(deadline.over())]).toEqual([1000, 0, 'deadline'])
  await runtime.advance(1)
  expect(deadline.remaining()).toBe(-1)
})

test.each([
  ['450 ms of a call that has time', 0, undefined, AbortSignal.abort(), 450],
  ['450 ms of a call that is just over', 1000, undefined, AbortSignal.abort(), 450],
  ['what is left of the 900 ms past its end', 1600, undefined, AbortSignal.abort(), 300],
  ['nothing 900 ms past its end', 1900, undefined, AbortSignal.abort(), 0],
  ['what is left of a bound of its own', 1400, 500, AbortSignal.abort(), 100],
  ['the rest of the call where nothing may go past it', 800, 0, undefined, 200],
  ['nothing once the signal has fired where nothing may go past it', 800, 0, AbortSignal.abort(), 0],
] as const)('the time of a call gives one step %s', async (_what, elapsed, past, signal, left) => {
  const runtime = fakeRuntime()
  const deadline = new Deadline(runtime, 1000, signal)
  await runtime.advance(elapsed)
  const grace = deadline.grace(past)
  expect(grace.remaining()).toBe(left)
  expect(grace.signal).toBeUndefined()
})

test("the time of a call ends when the caller's signal fires, which takes precedence", async () => {
  const runtime = fakeRuntime()
  const controller = new AbortController()
  const deadline = new Deadline(runtime, 1000, controller.signal)
  expect(deadline.over()).toBeUndefined()
  controller.abort()
  expect(why(deadline.over())).toBe('aborted')
  await runtime.advance(2000)
  expect(why(deadline.over())).toBe('aborted')
})

test("a wait gives the promise's value or its rejection, and leaves nothing behind", async () => {
  const runtime = fakeRuntime()
  const { signal } = new AbortController()
  const wait = <T>(promise: Promise<T>) => new Deadline(runtime, 1000, signal).race(promise)
  await expect(wait(Promise.reject(new Error('x')))).rejects.toThrow('x')
  expect([runtime.timers, listeners(signal)]).toEqual([0, 0])
  for (let call = 0; call < 1000; call++) expect(await wait(Promise.resolve('x'))).toBe('x')
  expect([runtime.timers, listeners(signal)]).toEqual([0, 0])
})

test.each<[string, (deadline: Deadline) => Promise<unknown>, milliseconds: number, ending: unknown]>([
  ['a wait ends at the deadline', (deadline) => deadline.race(never()), 1000, 'deadline'],
  ['a sleep takes the given time', (deadline) => deadline.sleep(300), 300, undefined],
  ['a sleep ends at the deadline', (deadline) => deadline.sleep(5000), 1000, 'deadline'],
])('%s, and both end immediately when the signal fires', async (_what, begin, milliseconds, ending) => {
  const runtime = fakeRuntime()
  const controller = new AbortController()
  let ended: unknown = 'not yet'
  const waiting = begin(new Deadline(runtime, 1000, controller.signal)).then((result) => {
    ended = why(result)
  })
  await runtime.advance(milliseconds - 1)
  expect(ended).toBe('not yet')
  await runtime.advance(1)
  await waiting
  expect(ended).toBe(ending)
  const aborted = begin(new Deadline(runtime, 1000, controller.signal))
  controller.abort('enough')
  expect(why(await aborted)).toBe('aborted')
  expect([runtime.timers, listeners(controller.signal)]).toEqual([0, 0])
})

test.each([
  ['aborted', (): Deadline => new Deadline(fakeRuntime(), 1000, AbortSignal.abort())],
  ['deadline', (): Deadline => new Deadline(fakeRuntime(), 0, undefined)],
])('a wait of a call that has ended gives %s, even if the promise is settled', async (reason, make) => {
  expect(why(await make().race(Promise.resolve('x')))).toBe(reason)
  const late = async (): Promise<void> => {
    expect(why(await make().race(Promise.reject(new Error('late'))))).toBe(reason)
  }
  expect(await unhandledBy(late)).toEqual([])
})

test('a wait handles the rejection of an abandoned promise', async () => {
  const runtime = fakeRuntime()
  const abandon = async (): Promise<void> => {
    let fail: (error: Error) => void = () => {}
    const pending = new Promise<never>((_resolve, reject) => {
      fail = reject
    })
    const waiting = new Deadline(runtime, 10, undefined).race(pending)
    await runtime.advance(10)
    expect(why(await waiting)).toBe('deadline')
    fail(new Error('late'))
    await runtime.settle()
  }
  expect(await unhandledBy(abandon)).toEqual([])
})
