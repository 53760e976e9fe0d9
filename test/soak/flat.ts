/** How much more memory a run may have at its end than in its middle, bytes: code and caches still settle for a while. */
const SLACK = 6 * 2 ** 20

/** What grew between the middle of a run and its end, in words. */
export function grown(
  looks: readonly {
    readonly heap: number
    readonly listeners: number
    readonly rows?: number
    readonly timers?: number
    readonly resources?: Readonly<Record<string, number>>
  }[],
): string[] {
  const middle = looks[Math.floor(looks.length / 2)]
  const end = looks.at(-1)
  if (middle === undefined || end === undefined) return ['nothing was looked at']
  const found: string[] = []
  if (end.heap > middle.heap + SLACK) found.push(`heap from ${middle.heap} to ${end.heap} bytes`)
  if (end.listeners > middle.listeners) found.push(`listeners from ${middle.listeners} to ${end.listeners}`)
  if ((end.rows ?? 0) > (middle.rows ?? 0) * 1.1 + 20) found.push(`rows from ${middle.rows} to ${end.rows}`)
  if ((end.timers ?? 0) > (middle.timers ?? 0)) found.push(`timers from ${middle.timers} to ${end.timers}`)
  const total = (resources: Readonly<Record<string, number>> = {}): number =>
    Object.values(resources).reduce((sum, count) => sum + count, 0)
  // Connections come and go by a few.
  if (total(end.resources) > total(middle.resources) + 12)
    found.push(`resources from ${total(middle.resources)} to ${total(end.resources)}`)
  return found
}
