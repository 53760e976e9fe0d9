export function refused(status: number, reason: string, headers: Record<string, string> = {}): Response {
  return Response.json({ state: 'refused', reason }, { status, headers })
}
