/**
 * True if the request has the token: `Authorization: Bearer <token>`. Digests are compared, in the same time wherever they
 * differ, so that neither the token nor its length can be guessed from how long a response takes.
 */
export async function isCaller(request: Request, token: string): Promise<boolean> {
  const [given, expected] = await Promise.all([
    digest(request.headers.get('Authorization') ?? ''),
    digest(`Bearer ${token}`),
  ])
  return crypto.subtle.timingSafeEqual(given, expected)
}

function digest(text: string): Promise<ArrayBuffer> {
  return crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
}
