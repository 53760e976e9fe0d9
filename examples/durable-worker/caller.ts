/**
 * True if the request has the token: `Authorization: Bearer <token>`. Compares digests in constant
 * time: the duration of a response must reveal neither the token nor its length.
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
