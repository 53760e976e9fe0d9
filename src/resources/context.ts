import type { RequestOptions } from '../call-options.ts'
import type { Endpoint } from '../http/call.ts'
import { READ_ITEM, read } from '../http/request.ts'
import type { Lifetime } from '../lifetime.ts'
import type { Schemas } from '../options.ts'
import { attachInfo } from '../response-info.ts'
import type { Parse } from '../schemas/shape.ts'
import { callSettings, readArguments } from '../settings/arguments.ts'
import type { Settings } from '../settings/resolve.ts'

export interface ResourceContext
  extends Pick<Settings<Schemas>, 'connection' | 'defaults' | 'schemas' | 'listEnvelope'> {
  readonly lifetime: Lifetime
}

export async function retrieve<T>(
  { connection, lifetime, defaults }: ResourceContext,
  endpoint: Endpoint,
  path: string,
  parse: Parse<T>,
  options: RequestOptions | undefined,
): Promise<T> {
  const settings = callSettings(defaults, readArguments.call(options))
  lifetime.check()
  const { value, info } = await read(connection, { ...READ_ITEM, endpoint, path, settings, parse })
  attachInfo(value, info)
  return value
}
