import { byId } from './elements.ts'

export function report(problem: unknown, id = 'problem'): void {
  const place = byId(id)
  place.textContent = problem === null ? '' : problem instanceof Error ? problem.message : String(problem)
  place.hidden = problem === null
}

export async function call(method: string, path: string, body?: string): Promise<unknown> {
  const response = await fetch(`/__sandbox${path}`, { method, ...(body !== undefined && { body }) })
  const answer: unknown = await response.json()
  if (response.ok) return answer
  const reason = typeof answer === 'object' && answer !== null ? Reflect.get(answer, 'error') : undefined
  throw new Error(typeof reason === 'string' ? reason : `the sandbox returned ${response.status}`)
}

export function act(work: () => Promise<unknown>): void {
  report(null)
  work().catch(report)
}
